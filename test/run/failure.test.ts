import { describe, expect, it } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { Agent } from '../../src/flow/agent.ts'
import { Sequential } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Model, ModelContext } from '../../src/model/spec.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Session } from '../../src/session/session.ts'
import { tool } from '../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo, eventsOf, failureOf, kinds, store } from './make.ts'

const overloaded = { error: { status: 529, message: 'overloaded' } }

describe('a model that fails', () => {
  it('is asked again, each failed attempt on the record and in the events', async () => {
    const { agent } = agentWith([overloaded, overloaded, 'done'])
    const pending = agent(ask())
    const events = await eventsOf(pending)
    const out = await pending
    expect(kinds(out)).toEqual(['user', 'error', 'error', 'assistant'])
    expect(out.chunks.at(1)).toMatchObject({ attempt: 1, retry: 'after' })
    expect(events.filter(event => event.type === 'retry')).toHaveLength(2)
  })

  it('does not change the state by failing first', async () => {
    const steady = await agentWith(['done']).agent(ask('same'))
    const shaky = await agentWith([overloaded, 'done']).agent(ask('same'))
    expect(shaky.state).toBe(steady.state)
    expect(shaky.head).not.toBe(steady.head)
  })

  it('fails the run with the session so far, which is in the store and can be gone on from', async () => {
    const { agent } = agentWith(
      [callsEcho('x'), { error: { status: 400, message: 'bad request' } }, 'done'],
      {
        tools: [echo],
      },
    )
    const error = await failureOf(agent(ask()))
    expect(error.code).toBe('model-rejected')
    expect(kinds(error.session)).toEqual(['user', 'assistant', 'tool-result', 'error'])
    expect((await store.sessions.get(error.session.id)).head).toBe(error.session.head)
    const out = await agent(error.session)
    expect(out.text).toBe('done')
    expect(out.lineage.parents).toEqual([error.session.id])
  })

  it('throws the same error however often it is awaited', async () => {
    const pending = agentWith([{ error: { status: 400 } }]).agent(ask())
    const first = await failureOf(pending)
    expect(await failureOf(pending)).toBe(first)
  })
})

describe('a cancelled run', () => {
  it('ends while the model answers, without an answer', async () => {
    const { agent } = agentWith([{ text: 'late', delayMs: 60_000 }])
    const pending = agent(ask())
    queueMicrotask(() => pending.cancel('enough'))
    const error = await failureOf(pending)
    expect(error.code).toBe('cancelled')
    expect(error.message).toContain('enough')
    expect(kinds(error.session)).toEqual(['user'])
  })

  it('leaves a model behind that does not listen, and what that says later is told to nobody', async () => {
    const asked = Promise.withResolvers<ModelContext>()
    const model: Model = {
      id: 'mine/deaf',
      answer: (_, context) => {
        asked.resolve(context)
        return new Promise(() => {})
      },
    }
    const agent = new Agent('Be brief.', { model, builtins: false })
    const pending = agent(ask())
    const events = eventsOf(pending)
    const { onDelta } = await asked.promise
    pending.cancel('enough')
    onDelta?.({ type: 'text-delta', text: 'late' })
    expect((await failureOf(pending)).code).toBe('cancelled')
    expect((await events).map(({ type }) => type)).toEqual(['run-start', 'run-end'])
    const spent = await agent(ask(), { budget: { time: 5 } })
    expect(spent.chunks.at(-1)).toMatchObject({ error: 'budget-spent' })
  })

  it('reaches the tool, and every call has a result that says so', async () => {
    const started = Promise.withResolvers<void>()
    let stopped = false
    const hang = tool({
      name: 'hang',
      description: '',
      input: { type: 'object' },
      run: (_args, { signal }) => {
        signal.addEventListener('abort', () => {
          stopped = true
        })
        started.resolve()
        return new Promise(() => {})
      },
    })
    const { agent } = agentWith([{ toolCalls: [{ name: 'hang' }, { name: 'hang' }] }], { tools: [hang] })
    const controller = new AbortController()
    const pending = agent(ask(), { signal: controller.signal })
    await started.promise
    controller.abort()
    const error = await failureOf(pending)
    expect(stopped).toBe(true)
    expect(error.session.pending).toEqual([])
    const outcomes = error.session.chunks
      .filter(chunk => chunk.kind === 'tool-result')
      .map(chunk => chunk.outcome)
    expect(outcomes).toMatchObject([{ error: 'cancelled' }, { error: 'cancelled' }])
  })

  it('does not start when the signal was aborted before', async () => {
    const { agent, model } = agentWith(['never'])
    const error = await failureOf(agent(ask(), { signal: AbortSignal.abort('no') }))
    expect(error.code).toBe('cancelled')
    expect(model.calls).toHaveLength(0)
  })

  it('leaves no listener on a signal that outlives it', async () => {
    const controller = new AbortController()
    let listeners = 0
    const { signal } = controller
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    Object.assign(signal, {
      addEventListener(...given: Parameters<typeof add>) {
        listeners++
        add(...given)
      },
      removeEventListener(...given: Parameters<typeof remove>) {
        listeners--
        remove(...given)
      },
    })
    await agentWith([callsEcho('x'), 'done'], { tools: [echo] }).agent(ask(), { signal })
    expect(listeners).toBe(0)
  })
})

describe('an error', () => {
  it('that cannot be written as text still ends its run, with the session so far', async () => {
    const { agent } = agentWith(() => 'done')
    for (const thrown of [Object.create(null), { message: 'plain' }]) {
      const pending = new Sequential(agent, () => Promise.reject(thrown))(ask())
      const error = await failureOf(pending)
      expect(error).toMatchObject({ code: 'run-failed', cause: expect.anything() })
      expect(error.message).toMatch(/^plain$|cannot be written as text/)
      expect(kinds(error.session)).toEqual(['user', 'assistant'])
      expect((await store.runs.get(pending.runId)).status).toBe('failed')
    }
  })

  it('that several runs were thrown carries the session of each', async () => {
    const shared = new RathError('store-unreachable', 'nobody is there')
    const layer = new Sequential(() => Promise.reject(shared))
    const errors = await Promise.all([ask('mine'), ask('yours')].map(session => failureOf(layer(session))))
    expect(errors.map(({ session }) => session.chunks.at(0)?.text)).toEqual(['mine', 'yours'])
    expect(errors.map(({ code, message }) => [code, message])).toEqual([
      ['store-unreachable', 'nobody is there'],
      ['store-unreachable', 'nobody is there'],
    ])
  })

  it('in one branch waits until an external effect of another has ended, and a resume does not do that again', async () => {
    const sent = Promise.withResolvers<void>()
    let mails = 0
    let isAway = true
    class Shop extends Workflow {
      async forward(session: Session, context: ForwardContext) {
        const mail = context.effect('mail', { to: 'ann' }, async () => {
          sent.resolve()
          // Later than the failure beside it.
          for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate)
          mails++
          return 'sent'
        })
        const charge = sent.promise.then(() => {
          if (isAway) throw new Error('the bank is away')
        })
        const [receipt] = await Promise.all([mail, charge])
        return session.user(receipt)
      }
    }
    const runtime = createRuntime({ store })
    const pending = runtime.run(new Shop(), ask())
    await expect(pending).rejects.toThrow('the bank is away')
    expect(mails).toBe(1)
    const sending = (await store.runs.journal(pending.runId)).filter(({ kind }) => kind === 'mail')
    expect(sending.map(({ outcome }) => outcome)).toMatchObject([{ value: 'sent' }])
    isAway = false
    const out = await runtime.resume(pending.runId, new Shop())
    expect(out.chunks.findLast(chunk => chunk.kind === 'user')?.text).toBe('sent')
    expect(mails).toBe(1)
  })
})
