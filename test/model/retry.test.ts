import { describe, expect, test, vi } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { type RetryOptions, sleep, withRetry } from '../../src/model/retry.ts'
import { failure } from './ask.ts'

const overloaded = (data = {}) => new RathError('model-overloaded', 'Busy.', { data })

/** Runs a task that fails in these ways before it succeeds, and tells what was waited. */
async function run(errors: Error[], options: RetryOptions = {}, random = () => 1) {
  const waits: number[] = []
  const told: number[] = []
  const result = withRetry(
    async attempt => {
      const error = errors[attempt - 1]
      if (error) throw error
      return `try ${attempt}`
    },
    options,
    {
      random,
      sleep: async ms => void waits.push(ms),
      onRetry: (_, attempt) => told.push(attempt),
    },
  )
  return { result: await result.catch(error => error), waits, told }
}

describe('retrying', () => {
  test('waits longer each time, up to the cap', async () => {
    const errors = Array.from({ length: 6 }, () => overloaded())
    const { result, waits, told } = await run(errors, { attempts: 9, baseMs: 100, capMs: 1000 })
    expect(result).toBe('try 7')
    expect(waits).toEqual([100, 200, 400, 800, 1000, 1000])
    expect(told).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('takes any time up to that: full jitter', async () => {
    expect((await run([overloaded()], { baseMs: 100 }, () => 0)).waits).toEqual([0])
    expect((await run([overloaded()], { baseMs: 100 }, () => 0.37)).waits).toEqual([37])
  })

  test('gives up after the last attempt, with the last error', async () => {
    const errors = [overloaded(), overloaded(), overloaded()]
    expect((await run(errors, { attempts: 3 })).result).toBe(errors[2])
    expect((await run(errors, { attempts: 1 })).result).toBe(errors[0])
    expect((await run(errors, { attempts: Number.NaN })).result).toBe(errors[0])
  })

  test('does not try what cannot help, nor errors that are not ours', async () => {
    const rejected = new RathError('model-rejected', 'No.')
    const bug = new TypeError('x is not a function')
    for (const error of [rejected, bug])
      expect(await run([error])).toMatchObject({ result: error, waits: [] })
  })

  test('waits as long as the provider asks, and a little more', async () => {
    const { waits } = await run([overloaded({ retryAfterMs: 5000 })], { baseMs: 100 }, () => 0.5)
    expect(waits).toEqual([5050])
  })

  test('does not wait longer than it may, and says how long that would be', async () => {
    const { result, waits } = await run([overloaded({ retryAfterMs: 3_600_000 })])
    expect(waits).toEqual([])
    expect(result).toMatchObject({ code: 'model-overloaded', data: { retryAfterMs: 3_600_000 } })
    expect(result.message).toContain('3600 s')
  })

  test('ends at once when aborted while it waits', async () => {
    const abort = new AbortController()
    const task = vi.fn(async () => {
      throw overloaded({ retryAfterMs: 50_000 })
    })
    const work = failure(
      withRetry(task, {}, { signal: abort.signal, onRetry: () => queueMicrotask(() => abort.abort()) }),
    )
    expect((await work).code).toBe('cancelled')
    expect(task).toHaveBeenCalledTimes(1)
    expect((await failure(withRetry(task, {}, { signal: abort.signal }))).code).toBe('cancelled')
    expect(task).toHaveBeenCalledTimes(1)
  })
})

test('sleep waits also for longer than a timer can', () => {
  vi.useFakeTimers()
  try {
    let isOver = false
    void sleep(2 ** 31).then(() => {
      isOver = true
    })
    vi.advanceTimersByTime(1000)
    expect([isOver, vi.getTimerCount()]).toEqual([false, 1])
  } finally {
    vi.useRealTimers()
  }
})

test('sleep leaves neither a timer nor a listener behind', async () => {
  vi.useFakeTimers()
  try {
    const abort = new AbortController()
    const slept = sleep(1000, abort.signal)
    vi.advanceTimersByTime(1000)
    await slept
    const cut = failure(sleep(1000, abort.signal))
    abort.abort()
    expect((await cut).code).toBe('cancelled')
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
