import { describe, expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Session } from '../../src/session/session.ts'
import { tool } from '../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo, eventsOf } from './make.ts'

const types = (events: readonly { type: string }[]) => events.map(event => event.type)

describe('the events of a run', () => {
  it('tell everything in order and end once', async () => {
    const { agent } = agentWith([callsEcho('x'), { text: 'Hi there', deltas: ['Hi ', 'there'] }], {
      tools: [echo],
    })
    const pending = agent(ask())
    const events = await eventsOf(pending)
    expect(types(events)).toEqual([
      'run-start',
      'tool-input-delta',
      'tool-call',
      'tool-result',
      'chunk',
      'chunk',
      'text-delta',
      'text-delta',
      'chunk',
      'run-end',
    ])
    expect(new Set(events.map(event => event.sessionId))).toEqual(new Set([pending.id]))
    expect(await eventsOf(pending)).toEqual([])
  })

  it('come from nested agents and parallel branches too, each with its producer path', async () => {
    class Team extends Workflow {
      writer = agentWith(() => ({ text: 'draft', deltas: ['draft'] }), { name: 'writer' }).agent
      async forward(session: Session) {
        const drafts = await Promise.all(session.forks(2).map(branch => this.writer(branch)))
        return (drafts[0] as Session).merge(drafts.slice(1))
      }
    }
    const pending = new Team()(ask())
    const events = await eventsOf(pending)
    const deltas = events.filter(event => event.type === 'text-delta')
    expect(deltas.map(event => event.by)).toEqual(['Team/writer', 'Team/writer'])
    expect(new Set(deltas.map(event => event.sessionId)).size).toBe(2)
    expect(types(events).filter(type => type === 'run-end')).toHaveLength(3)
    expect(events.at(-1)).toMatchObject({ type: 'run-end', by: 'Team', status: 'done' })
  })

  it('carry progress of tools', async () => {
    const slow = tool({
      name: 'slow',
      description: '',
      input: { type: 'object' },
      run: (_args, { progress }) => {
        progress({ done: 0.5 })
        return 'ok'
      },
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'slow' }] }, 'done'], { tools: [slow] })
    const events = await eventsOf(agent(ask()))
    expect(events.find(event => event.type === 'tool-progress')).toMatchObject({ data: { done: 0.5 } })
  })

  it('never let a listener break or block the run', async () => {
    const warnings: string[] = []
    const warn = (warning: Error) => warnings.push(warning.message)
    process.on('warning', warn)
    const { agent } = agentWith(['done'])
    const out = await agent(ask(), {
      onEvent: event => {
        if (event.type === 'chunk') throw new Error('listener trouble')
        if (event.type === 'run-start')
          return Promise.reject(new Error('async trouble')) as unknown as undefined
        return undefined
      },
    })
    await new Promise(resolve => setImmediate(resolve))
    process.off('warning', warn)
    expect(out.text).toBe('done')
    expect(warnings.join('\n')).toContain('listener trouble')
    expect(warnings.join('\n')).toContain('async trouble')
  })

  it('can be left early without ending the run', async () => {
    const { agent } = agentWith(['done'])
    const pending = agent(ask())
    for await (const _ of pending) break
    expect((await pending).text).toBe('done')
  })

  it('end with what the run threw', async () => {
    const { agent } = agentWith([{ error: { status: 400, message: 'refused' } }])
    const follow = async () => {
      for await (const _ of agent(ask()));
    }
    await expect(follow()).rejects.toThrow('refused')
  })
})

describe('a pending session', () => {
  it('knows who it will be before the work is done, and is taken as input', async () => {
    const { agent } = agentWith(['one', 'two'])
    const input = ask()
    const first = agent(input)
    expect(first.lineage.parents).toEqual([input.id])
    const second = agent(first)
    expect(second.lineage.parents).toEqual([first.id])
    expect((await second).text).toBe('two')
    expect((await first).id).toBe(first.id)
    expect(second.runId).not.toBe('')
  })

  it('that nobody waits for says once that it failed', async () => {
    const warned = new Promise<Error>(resolve => process.once('warning', resolve))
    agentWith([{ error: { status: 400, message: 'unseen' } }]).agent(ask())
    expect((await warned).message).toContain('unseen')
  })
})
