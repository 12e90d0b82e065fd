import { describe, expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Session } from '../../src/session/session.ts'
import { agentWith, ask, failureOf, kinds } from '../run/make.ts'

class Note extends Workflow {
  forward(session: Session): Session {
    return session.append({ kind: 'note', name: 'forward' })
  }
}

const names = (session: Session) =>
  session.chunks.flatMap(chunk => (chunk.kind === 'note' ? [chunk.name] : []))
const noting = (name: string) => (_: unknown, session: Session) => session.append({ kind: 'note', name })

describe('hooks', () => {
  it('run around every call in the order they were added, and may replace what they get', async () => {
    const note = new Note()
    note.onBeforeForward(noting('before 1'))
    note.onBeforeForward(async (_, session) => session.append({ kind: 'note', name: 'before 2' }))
    note.onForward((_, _input, result) => result.append({ kind: 'note', name: 'after 1' }))
    note.onForward(async (_, _input, result) => result.append({ kind: 'note', name: 'after 2' }))
    const all = ['before 1', 'before 2', 'forward', 'after 1', 'after 2']
    const once = await note(ask())
    expect(names(once)).toEqual(all)
    expect(names(await note(once))).toEqual([...all, ...all])
  })

  it('see the workflow, its input and its result, and may only look', async () => {
    const note = new Note()
    const seen: unknown[] = []
    note.onBeforeForward((workflow, session) => void seen.push(workflow, session.length))
    note.onForward((workflow, session, result) => {
      seen.push(workflow, session.length, result.length)
    })
    const out = await note(ask())
    expect(seen).toEqual([note, 1, note, 1, 2])
    expect(out.length).toBe(2)
  })

  it('are taken off by disposing, one at a time, and by using', async () => {
    const note = new Note()
    const hook = noting('hook')
    const first = note.onBeforeForward(hook)
    const second = note.onBeforeForward(hook)
    expect(names(await note(ask()))).toEqual(['hook', 'hook', 'forward'])
    first[Symbol.dispose]()
    first[Symbol.dispose]()
    expect(names(await note(ask()))).toEqual(['hook', 'forward'])
    second[Symbol.dispose]()
    {
      using _ = note.onForward((_workflow, _session, result) => result.append({ kind: 'note', name: 'used' }))
      expect(names(await note(ask()))).toEqual(['forward', 'used'])
    }
    expect(names(await note(ask()))).toEqual(['forward'])
  })

  it('that throw fail the call by name, with the session so far', async () => {
    const note = new Note()
    note.onForward(function audit() {
      throw new Error('not allowed')
    })
    const input = ask()
    const error = await failureOf(note(input))
    expect(error.message).toBe('The hook audit after Note.forward threw: not allowed')
    expect(error.code).toBe('run-failed')
    expect(error.session.id).toBe(input.id)
    note.onBeforeForward(() => Promise.reject(new Error('early')))
    expect((await failureOf(note(input))).message).toBe(
      'The hook (anonymous) before Note.forward threw: early',
    )
  })

  it('that return something else are refused', async () => {
    const note = new Note()
    note.onForward((() => 'nonsense') as never)
    expect((await failureOf(note(ask()))).message).toContain('returned "nonsense"')
    expect(() => note.onForward(5 as never)).toThrow('A hook is a function, not 5')
  })

  it('work on agents, belong to the run, and are of one instance only', async () => {
    const { agent } = agentWith(['one', 'two'])
    const { agent: checker } = agentWith(() => 'fine', { name: 'checker' })
    agent.onForward((_, _input, result) => checker(result))
    const out = await agent(ask())
    expect(kinds(out)).toEqual(['user', 'assistant', 'assistant'])
    expect(out.chunks.at(-1)?.by).toBe('Agent/checker')
    expect(kinds(await agentWith(['plain']).agent(ask()))).toEqual(['user', 'assistant'])
  })
})
