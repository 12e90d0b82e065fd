import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { type Answer, type ScriptedModel, scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { temporaryFolder } from '../sandbox/make.ts'

let folder: ReturnType<typeof temporaryFolder>
let runtime: Runtime
const project = () => join(folder.path, 'project')
const write = (name: string, text: string) => writeFileSync(join(project(), name), text)
const read = (name: string) => readFileSync(join(project(), name), 'utf8')

beforeEach(() => {
  folder = temporaryFolder()
  mkdirSync(project())
  write('src.txt', 'v1\n')
  write('data.txt', 'one\ntwo\n')
  write('unrelated.txt', 'nothing\n')
  runtime = createRuntime({ store: 'memory:', workspaces: join(folder.path, 'kept') })
})

afterEach(async () => {
  await runtime.close()
  folder[Symbol.dispose]()
})

interface Edits {
  readonly message?: string
  readonly writer?: string
  readonly description?: string
  readonly label?: string
  readonly extra?: boolean
  readonly request?: string
}

/** Somebody reads a file, somebody runs a command, somebody writes a file, each on a branch; one sums up, and it is published. */
function team(edits: Edits = {}) {
  const models: Record<string, ScriptedModel> = {}
  const published: string[] = []
  const agent = (name: string, prompt: string, used: string, args: Record<string, string>) => {
    const model = scripted(({ messages }): Answer => {
      const last = messages.at(-1)
      return last?.role === 'tool' ? `${name} is done.` : { toolCalls: [{ name: used, args }] }
    })
    models[name] = model
    return new Agent(prompt, { model, name, builtins: [used as 'run_shell_command'] })
  }
  const says = (name: string, prompt: string) => {
    const model = scripted(() => `${name} says so.`)
    models[name] = model
    return new Agent(prompt, { model, name, builtins: false })
  }
  const reader = agent('reader', 'Read.', 'read_workspace_file', { path: 'src.txt' })
  const tester = agent('tester', 'Test.', 'run_shell_command', { cmd: 'wc -l < data.txt' })
  tester.addTool(
    tool({
      name: 'note',
      description: edits.description ?? 'Takes a note.',
      input: { type: 'object' },
      effect: 'pure',
      run: () => null,
    }),
  )
  const writer = agent('writer', edits.writer ?? 'Write.', 'write_workspace_file', {
    path: 'out.txt',
    content: 'out\n',
  })
  const summer = says('summer', 'Sum up.')
  const last = edits.extra ? says('last', 'Have the last word.') : undefined
  class Team extends Workflow {
    readonly side = new Parallel({ [edits.label ?? 'read']: reader, test: tester, write: writer })
    readonly summer = summer
    readonly last = last
    async forward(session: Session, context: ForwardContext) {
      const out = await this.summer(this.side(session))
      await context.effect('publish', { to: edits.request ?? 'all' }, () => {
        published.push(edits.request ?? 'all')
      })
      return this.last ? this.last(out) : out
    }
  }
  const session = Session.fromUserMessage(edits.message ?? 'Work.').to('local', project())
  const asked = () =>
    Object.fromEntries(
      Object.entries(models).flatMap(([name, { calls }]) => (calls.length > 0 ? [[name, calls.length]] : [])),
    )
  return { workflow: new Team(), session, asked, published }
}

/** A run, an edit, and a run that borrows from the first: which models are asked, which tools run, what is published. */
async function rerun(edit: () => Edits | undefined) {
  const first = team()
  const begun = runtime.run(first.workflow, first.session)
  await begun
  expect(first.asked()).toEqual({ reader: 2, tester: 2, writer: 2, summer: 1 })
  const second = team(edit())
  const again = runtime.run(second.workflow, second.session, { reuse: begun.runId })
  const out = await again
  const { kinds } = await runtime.report(again.runId)
  const tools = (await runtime.runs.journal(again.runId)).flatMap(({ kind, request }) => {
    const { request: call, reused } = request as { request: { tool: string }; reused?: string }
    return kind === 'tool' && reused === undefined ? [call.tool] : []
  })
  expect(tools.length).toBe(kinds.tool?.paid.calls ?? 0)
  const report = await runtime.replay(again.runId, second.workflow)
  expect(report.divergence?.message).toBeUndefined()
  expect(report.ok).toBe(true)
  return { models: second.asked(), tools: tools.sort(), published: second.published.length, out }
}

const all = { reader: 2, tester: 2, writer: 2, summer: 1 }

describe('a run that borrows from another pays for what an edit changes, and for what follows from it', () => {
  it('nothing changed: nothing', async () => {
    const { models, tools, published } = await rerun(() => undefined)
    expect([models, tools, published]).toEqual([{}, [], 0])
    expect(read('out.txt')).toBe('out\n')
  })

  it('1. an unrelated file: commands run again, and no model is asked', async () => {
    const { models, tools, published } = await rerun(() => void write('unrelated.txt', 'else\n'))
    expect([models, tools, published]).toEqual([{}, ['run_shell_command'], 0])
    expect([read('unrelated.txt'), read('out.txt')]).toEqual(['else\n', 'out\n'])
  })

  it('2. the file that was read: the read, and whoever is shown it', async () => {
    const { models, tools, out } = await rerun(() => void write('src.txt', 'v2\n'))
    expect([models, tools]).toEqual([{ reader: 1, summer: 1 }, ['read_workspace_file', 'run_shell_command']])
    expect(out.chunks.map(chunk => chunk.text).join()).toContain('v2')
  })

  it('3. the prompt of one agent: that one; what it does again it is not paid for', async () => {
    const { models, tools } = await rerun(() => ({ writer: 'Write well.' }))
    // It answers the same, so that its call is on record, and whoever comes after it is shown the same.
    expect([models, tools]).toEqual([{ writer: 2 }, []])
  })

  it('4. the description of a tool: whoever is shown it; its calls are on record', async () => {
    const { models, tools } = await rerun(() => ({ description: 'Takes a careful note.' }))
    expect([models, tools]).toEqual([{ tester: 2 }, []])
  })

  it('5. the message of the user: everything', async () => {
    const { models, tools, published } = await rerun(() => ({ message: 'Work hard.' }))
    expect(models).toEqual(all)
    expect(tools).toEqual(['read_workspace_file', 'run_shell_command', 'write_workspace_file'])
    expect(published).toBe(1)
  })

  it('6. the label of one branch: that branch, and whoever is shown it', async () => {
    const { models, tools } = await rerun(() => ({ label: 'look' }))
    expect([models, tools]).toEqual([{ reader: 2, summer: 1 }, ['read_workspace_file']])
  })

  it('7. one more agent at the end: that one', async () => {
    const { models, tools } = await rerun(() => ({ extra: true }))
    expect([models, tools]).toEqual([{ last: 1 }, []])
  })

  it('8. the request of an effect: that effect', async () => {
    const { models, tools, published } = await rerun(() => ({ request: 'some' }))
    expect([models, tools, published]).toEqual([{}, [], 1])
  })

  it('9. the input of a command, with the same output: the command, and no model', async () => {
    const { models, tools } = await rerun(() => void write('data.txt', 'three\nfour\n'))
    expect([models, tools]).toEqual([{}, ['run_shell_command']])
    const other = await rerun(() => void write('data.txt', 'three\n'))
    expect([other.models, other.tools]).toEqual([{ tester: 1, summer: 1 }, ['run_shell_command']])
  })

  it('a file that it had written, and that is gone: it is written again', async () => {
    const { models, tools } = await rerun(() => void rmSync(join(project(), 'out.txt')))
    expect([models, tools]).toEqual([{}, []])
    expect(read('out.txt')).toBe('out\n')
  })
})

it('a run with reuse answers with the files as they are, also for one and the same session', async () => {
  const agent = () =>
    new Agent('Read.', {
      model: scripted(({ messages }) => {
        const last = messages.at(-1)
        if (last?.role !== 'tool')
          return { toolCalls: [{ name: 'read_workspace_file', args: { path: 'src.txt' } }] }
        return last.outcome.kind === 'value' ? String(last.outcome.value) : 'nothing'
      }),
      builtins: ['read_workspace_file'],
    })
  const session = Session.fromUserMessage('What is there?').to('local', project())
  const first = runtime.run(agent(), session)
  expect((await first).text).toBe('v1\n')
  write('src.txt', 'v2\n')
  expect((await runtime.run(agent(), session, { reuse: first.runId })).text).toBe('v2\n')
  const same = Session.fromUserMessage('What is there?').to('local', project())
  expect((await runtime.run(agent(), same, { reuse: first.runId })).text).toBe('v2\n')
})

it('an effect that says that it depends on files is done again when one has changed', async () => {
  let built = 0
  class Build extends Workflow {
    async forward(session: Session, { effect }: ForwardContext) {
      const both = [
        await effect('build', {}, () => ++built, { effect: 'idempotent', files: true }),
        await effect('plan', {}, () => ++built, { effect: 'idempotent' }),
      ]
      return session.user(both.join(' '))
    }
  }
  const session = () => Session.fromUserMessage('Build.').to('local', project())
  const first = runtime.run(new Build(), session())
  await first
  const same = runtime.run(new Build(), session(), { reuse: first.runId })
  expect((await same).chunks.findLast(chunk => chunk.kind === 'user')?.text).toBe('1 2')
  write('src.txt', 'v2\n')
  const changed = runtime.run(new Build(), session(), { reuse: first.runId })
  expect((await changed).chunks.findLast(chunk => chunk.kind === 'user')?.text).toBe('3 2')
})

it('an agent inside a tool is asked again for nothing that still holds', async () => {
  const make = () => {
    const inner = scripted(({ messages }): Answer => {
      const last = messages.at(-1)
      if (last?.role !== 'tool')
        return { toolCalls: [{ name: 'read_workspace_file', args: { path: 'src.txt' } }] }
      return last.outcome.kind === 'value' ? `It says ${String(last.outcome.value)}` : 'nothing'
    })
    const outer = scripted(({ messages }): Answer => {
      const last = messages.at(-1)
      return last?.role === 'tool'
        ? 'Heard.'
        : { toolCalls: [{ name: 'ask', args: { request: 'What is there?' } }] }
    })
    const helper = new Agent('Read.', { name: 'helper', model: inner, builtins: ['read_workspace_file'] })
    const tools = [helper.asTool({ name: 'ask', description: 'Asks.' })]
    const agent = new Agent('Lead.', { name: 'lead', model: outer, tools, builtins: false })
    return { agent, asked: () => [outer.calls.length, inner.calls.length] }
  }
  const session = () => Session.fromUserMessage('Go.').to('local', project())
  const first = runtime.run(make().agent, session())
  await first
  const same = make()
  await runtime.run(same.agent, session(), { reuse: first.runId })
  expect(same.asked()).toEqual([0, 0])
  write('src.txt', 'v2\n')
  const changed = make()
  await runtime.run(changed.agent, session(), { reuse: first.runId })
  expect(changed.asked()).toEqual([1, 1])
})
