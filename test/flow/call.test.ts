import { getEventListeners } from 'node:events'
import { describe, expect, expectTypeOf, it } from 'vitest'
import type { AgentParam } from '../../src/doors/flow.ts'
import { type Agent, map, Parallel, PendingSession, Sequential, Workflow } from '../../src/index.ts'
import type { CallOptions } from '../../src/run/context.ts'
import type { SessionInput } from '../../src/run/pending-session.ts'
import { Session } from '../../src/session/session.ts'
import { agentWith, ask, callsEcho, echo, eventsOf, failureOf } from '../run/make.ts'

class Broken extends Workflow {
  forward(): Session {
    throw new Error('no luck')
  }
}

class Slow extends Workflow {
  readonly gate = Promise.withResolvers<void>()
  async forward(session: Session) {
    await this.gate.promise
    return session.append({ kind: 'note', name: 'done' })
  }
}

describe('a call', () => {
  it('returns at once, with id, run and lineage readable before the work is done', async () => {
    const slow = new Slow()
    const input = ask()
    const pending = slow(input)
    expect(pending).toBeInstanceOf(PendingSession)
    const { id, runId, lineage } = pending
    expect(lineage).toMatchObject({ parents: [input.id], operation: 'Slow', by: 'Slow' })
    slow.gate.resolve()
    const out = await pending
    expect([out.id, pending.runId]).toEqual([id, runId])
    expect(out.lineage).toMatchObject({ parents: [input.id], operation: 'Slow', by: 'Slow' })
  })

  it('gives the same session however often it is awaited', async () => {
    const pending = new Slow()
    pending.gate.resolve()
    const made = pending(ask())
    expect(await made).toBe(await made)
  })

  it('that failed throws the same error every time, from awaiting and from following', async () => {
    const pending = new Broken()(ask())
    const error = await failureOf(pending)
    expect(await failureOf(pending)).toBe(error)
    const follow = async () => {
      for await (const _ of pending);
    }
    expect(await failureOf(follow())).toBe(error)
    expect(error).toMatchObject({ code: 'run-failed', message: 'no luck' })
  })

  it('that fails unobserved is reported once, and one that is observed elsewhere never', async () => {
    const warnings: string[] = []
    const warn = (warning: Error) => warnings.push(warning.message)
    process.on('warning', warn)
    const seen = new Broken()(ask())
    const unseen = new Broken()(ask())
    await expect(seen).rejects.toThrow('no luck')
    for (let i = 0; i < 5; i++) await new Promise(resolve => setImmediate(resolve))
    process.off('warning', warn)
    expect(warnings.filter(text => text.includes(unseen.id))).toHaveLength(1)
    expect(warnings.filter(text => text.includes(seen.id))).toHaveLength(0)
  })

  it('takes a pending session, so that layers nest with one await', async () => {
    const { agent: first } = agentWith(['one'], { name: 'first' })
    const { agent: second } = agentWith(['two'], { name: 'second' })
    const out = await second(first(ask()))
    expect(out.chunks.map(chunk => chunk.text)).toEqual(['go', 'one', 'two'])
  })

  it('of a pending session that fails, fails with that error', async () => {
    const { agent } = agentWith(['never'])
    const input = new Broken()(ask())
    expect(await failureOf(agent(input))).toBe(await failureOf(input))
  })

  it('is cancelled through every level, and only as far as it was asked for', async () => {
    class Team extends Workflow {
      left = agentWith([{ text: 'late', delayMs: 60_000 }]).agent
      right = agentWith(['quick']).agent
      async forward(session: Session) {
        const [a, b] = session.forks(['a', 'b'])
        const slow = this.left(a)
        const done = await this.right(b)
        slow.cancel('not needed')
        await slow.catch(() => {})
        return done
      }
    }
    expect((await new Team()(ask())).text).toBe('quick')
    const pending = agentWith([{ text: 'late', delayMs: 60_000 }]).agent(ask())
    pending.cancel('enough')
    expect(await failureOf(pending)).toMatchObject({ code: 'cancelled' })
  })

  it('that is cancelled does not wait for a session that goes on being made', async () => {
    const slow = new Slow()
    const input = slow(ask())
    const pending = agentWith(['never']).agent(input)
    pending.cancel('enough')
    expect(await failureOf(pending)).toMatchObject({ code: 'cancelled' })
    slow.gate.resolve()
    expect((await input).length).toBe(2)
  })

  it('that is cancelled with the making of its input carries what that had done', async () => {
    const script = [callsEcho('x'), { text: 'late', delayMs: 60_000 }]
    class Chain extends Workflow {
      first = agentWith(script, { tools: [echo] }).agent
      second = agentWith(['never']).agent
      forward(session: Session) {
        return this.second(this.first(session))
      }
    }
    const pending = new Chain()(ask(), {
      onEvent: event => event.type === 'chunk' && event.chunk.kind === 'tool-result' && pending.cancel(),
    })
    const { session } = await failureOf(pending)
    expect(session.chunks.map(chunk => chunk.kind)).toEqual(['user', 'assistant', 'tool-result'])
  })

  it('leaves nothing on the signal it was given, also when it is cancelled after its end', async () => {
    const { signal } = new AbortController()
    const pending = new Sequential(session => session)(ask(), { signal })
    await pending
    pending.cancel()
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('carries events of every level, also when it is followed late', async () => {
    const { agent } = agentWith([{ text: 'hello', delayMs: 5 }], { name: 'inner' })
    class Outer extends Workflow {
      forward(session: Session) {
        return agent(session)
      }
    }
    const pending = new Outer()(ask())
    await Promise.resolve()
    const events = await eventsOf(pending)
    expect(events.at(-1)).toMatchObject({ type: 'run-end', by: 'Outer', status: 'done' })
    expect(events.some(event => event.by === 'Outer/inner' && event.type === 'text-delta')).toBe(true)
  })
})

describe('the types', () => {
  it('show both the call and the members', () => {
    class Review extends Workflow {
      writer = agentWith([]).agent
      forward(session: Session) {
        return this.writer(session)
      }
    }
    const review = new Review()
    expectTypeOf(review).toBeCallableWith(ask(), { signal: new AbortController().signal })
    expectTypeOf(review).parameter(0).toEqualTypeOf<SessionInput>()
    expectTypeOf(review).parameter(1).toEqualTypeOf<CallOptions | undefined>()
    expectTypeOf(review).returns.toEqualTypeOf<PendingSession>()
    expectTypeOf<Awaited<ReturnType<typeof review>>>().toEqualTypeOf<Session>()
    expectTypeOf(review.writer).toEqualTypeOf<Agent>()
    expectTypeOf(review.description).toBeString()
    expectTypeOf(review.to('openai/gpt-5.5')).toEqualTypeOf<Review>()
    expectTypeOf(review.namedAgents()).toEqualTypeOf<ReadonlyMap<string, AgentParam>>()
    review.onForward((workflow, session, result) => {
      expectTypeOf(workflow).toEqualTypeOf<Review>()
      expectTypeOf(session).toEqualTypeOf<Session>()
      expectTypeOf(result).toEqualTypeOf<Session>()
    })
    expectTypeOf(new Sequential(review)).toBeCallableWith(ask())
    expectTypeOf(new Parallel({ a: review, b: s => s.user('…') })).toBeCallableWith(ask())
    expectTypeOf(map).returns.toEqualTypeOf<PendingSession>()
  })
})

it('a class without a name goes by that of the class it extends', async () => {
  const flow = new (class extends Slow {})()
  flow.gate.resolve()
  const { lineage } = await flow(ask())
  expect([flow.name, lineage.operation, lineage.by]).toEqual(['Slow', 'Slow', 'Slow'])
  expect(String(flow)).toMatch(/^Slow\(/)
})

it('a layer hears of damage around the chunks of a file that was just read', async () => {
  const lines = ask().toJSONL().trimEnd().split('\n')
  const torn = Session.fromJSONL(`${lines.slice(0, -1).join('\n')}\n`, { onDamage: () => {} })
  const seen: boolean[] = []
  class Looks extends Workflow {
    forward(session: Session) {
      seen.push(session.verify().ok)
      return session
    }
  }
  await new Looks()(torn)
  expect([torn.verify().ok, ...seen]).toEqual([false, false])
})
