import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { ask, failureOf } from '../run/make.ts'

describe('a fake clock', () => {
  it('stands still until it is told to go on, and lets go when disposed', async () => {
    const real = Date.now()
    {
      using clock = fakeClock(1000)
      expect([clock.now, Date.now()]).toEqual([1000, 1000])
      const rung: number[] = []
      setTimeout(() => rung.push(Date.now()), 50)
      await clock.advance(49)
      expect(rung).toEqual([])
      await clock.advance(1)
      expect([rung, clock.now]).toEqual([[1050], 1050])
    }
    expect(Date.now()).toBeGreaterThanOrEqual(real)
  })

  it('lets what a timer started set the next one', async () => {
    using clock = fakeClock()
    const rung: number[] = []
    const chain = async () => {
      for (let i = 0; i < 3; i++) {
        await new Promise(resolve => setTimeout(resolve, 1000))
        rung.push(Date.now())
      }
    }
    const chained = chain()
    await clock.advance(3500)
    await chained
    expect(rung.map(time => Math.round(time / 1000))).toEqual([1, 2, 3])
  })

  it('takes an agent through the waits of its retries', async () => {
    using clock = fakeClock()
    const model = scripted([{ error: { status: 429, retryAfterMs: 20_000 } }, 'done'])
    const pending = new Agent('Answer.', { model, builtins: false })(ask())
    await clock.advance(1000)
    expect(model.calls).toHaveLength(1)
    await clock.advance(60_000)
    expect((await pending).text).toBe('done')
  })

  it('ends a tool that takes too long', async () => {
    using clock = fakeClock()
    const slow = tool({
      name: 'slow',
      description: 'Never ends.',
      input: { type: 'object' },
      timeout: 60_000,
      run: () => new Promise<string>(() => {}),
    })
    const model = scripted([{ toolCalls: [{ name: 'slow' }] }, 'done'])
    const pending = new Agent('Answer.', { model, tools: [slow], builtins: false })(ask())
    await clock.advance(61_000)
    const result = (await pending).chunks.find(chunk => chunk.kind === 'tool-result')
    expect(result?.outcome).toMatchObject({ kind: 'error', error: 'timed-out' })
  })

  it('refuses times that are none', async () => {
    expect(() => fakeClock(Number.NaN)).toThrow('not NaN')
    using clock = fakeClock()
    expect(() => fakeClock()).toThrow('already')
    expect(await failureOf(clock.advance(-1))).toMatchObject({ code: 'invalid-argument' })
  })
})
