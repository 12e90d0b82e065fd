import { describe, expect, it } from 'vitest'
import { PendingSession } from '../../../src/run/pending-session.ts'
import { agentWith, ask, failureOf } from '../../run/make.ts'

// OpenRath 1.2, list L: work that is under way. There it is a session whose reads block; here it is a PendingSession, a promise, because
// JavaScript cannot block and a value that changes under its reader is no value.

const gated = () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  return { ...agentWith(() => promise), answer: resolve }
}

describe('L: lazy sessions, pending ones here', () => {
  it('L1 a call returns before the model has answered, with id and lineage readable', async () => {
    const { agent, answer } = gated()
    const input = ask()
    const pending = agent(input)
    expect(pending.lineage.parents).toEqual([input.id])
    expect(pending.id).toMatch(/^[0-9a-f-]{36}$/)
    answer('done')
    expect((await pending).id).toBe(pending.id)
  })

  it('L2 and L3 chunks and usage are there after awaiting; that they cannot be read before differs: a half-made session is no session', async () => {
    const { agent, answer } = gated()
    const pending = agent(ask())
    expect(pending).not.toHaveProperty('chunks')
    expect(pending).not.toHaveProperty('usage')
    answer('done')
    const out = await pending
    expect([out.length, out.usage.totalTokens > 0]).toEqual([2, true])
  })

  it('L4 however many wait, the work is done once and all get the same object', async () => {
    const { agent, model } = agentWith(['done'])
    const pending = agent(ask())
    const outs = await Promise.all(Array.from({ length: 8 }, () => pending))
    expect(new Set(outs).size).toBe(1)
    expect(model.calls).toHaveLength(1)
  })

  it('L5 a failure is thrown to whoever waits; that it is thrown again every time differs: see B4', async () => {
    const pending = agentWith([{ error: { status: 400 } }]).agent(ask())
    const error = await failureOf(pending)
    expect(await failureOf(pending)).toBe(error)
  })

  it('L6 a workflow waits for its input before it begins', async () => {
    const { agent: first, answer } = gated()
    const { agent: second, model } = agentWith(['two'])
    const out = second(first(ask()))
    await new Promise(resolve => setImmediate(resolve))
    expect(model.calls).toHaveLength(0)
    answer('one')
    expect((await out).chunks.map(chunk => chunk.text)).toEqual(['go', 'one', 'two'])
  })

  it('L7 calling needs no await; that what it gives is awaited differs, as above', () => {
    const pending = agentWith(['done']).agent(ask())
    expect(pending).toBeInstanceOf(PendingSession)
    expect(pending).toBeInstanceOf(Promise)
    return pending
  })
})
