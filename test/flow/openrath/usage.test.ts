import { describe, expect, it } from 'vitest'
import { agentWith, ask, callsEcho, echo, failureOf } from '../../run/make.ts'

// OpenRath 1.2, list U. There a callback hears of a spent budget after the fact and may raise; here a budget is a limit that the loop keeps
// and records, because a limit that depends on somebody's callback is no limit.

const round = (tokens: number) => ({ ...callsEcho('x'), usage: { inputTokens: tokens, outputTokens: 0 } })
const answer = (tokens: number) => ({ text: 'done', usage: { inputTokens: tokens, outputTokens: 0 } })

describe('U: usage and budgets', () => {
  it('U1 usage adds up over the rounds', async () => {
    const out = await agentWith([round(10), round(20), answer(30)], { tools: [echo] }).agent(ask())
    expect(out.usage).toMatchObject({ inputTokens: 60, totalTokens: 60 })
  })

  it('U2 without any it is zero; that it is not missing differs: a sum of nothing is zero, and every reader would have to ask', async () => {
    expect(ask().usage.totalTokens).toBe(0)
    expect((await ask().merge(ask())).usage.totalTokens).toBe(0)
  })

  it('U3 crossing the limit is told with the session so far; differs: as an error chunk, which everybody can read', async () => {
    const out = await agentWith(() => round(60), { tools: [echo], budget: { tokens: 100 } }).agent(ask())
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
    expect(out.usage.totalTokens).toBe(120)
  })

  it('U4 whoever listens can end the run; differs: by cancelling it, since nothing a listener throws reaches the run', async () => {
    const { agent } = agentWith(() => round(60), { tools: [echo] })
    const pending = agent(ask(), {
      onEvent: event => {
        if (event.type === 'chunk' && event.chunk.kind === 'tool-result') pending.cancel('too expensive')
      },
    })
    const error = await failureOf(pending)
    expect(error.code).toBe('cancelled')
    expect(error.session.usage.totalTokens).toBe(60)
  })

  it('U5 and U6 it is said exactly once', async () => {
    const { agent, model } = agentWith(() => round(40), { tools: [echo], budget: { tokens: 100 } })
    const out = await agent(ask())
    expect(out.chunks.filter(chunk => chunk.kind === 'error')).toHaveLength(1)
    expect(model.calls).toHaveLength(3)
  })
})
