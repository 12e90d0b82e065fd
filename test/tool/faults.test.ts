import { getEventListeners } from 'node:events'
import { afterEach, expect, test, vi } from 'vitest'
import type { Json } from '../../src/base/json.ts'
import type { Tool } from '../../src/tool/spec.ts'
import type { Turn } from '../../src/tool/turn.ts'
import { call, dispatch, gate, numbered, outcomeOf, settle, simple } from './make.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** What keeps this process alive besides the test runner itself. */
function resources() {
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1
  return {
    timers: counts.Timeout ?? 0,
    processes: counts.ProcessWrap ?? 0,
    sockets: counts.TCPSocketWrap ?? 0,
  }
}

const hang = (onAbort?: (reason: unknown) => void) =>
  simple('hang', (_args, { signal }) => {
    signal.addEventListener('abort', () => onAbort?.(signal.reason))
    return new Promise(() => {})
  })

test('a call that takes too long is told to stop, and ends at once even when it does not listen', async () => {
  vi.useFakeTimers()
  const reasons: unknown[] = []
  const tool = { ...hang(reason => reasons.push(reason)), timeout: 5000 }
  const running = outcomeOf(tool)
  await vi.advanceTimersByTimeAsync(4999)
  expect(reasons).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(await running).toMatchObject({
    kind: 'error',
    error: 'timed-out',
    message: expect.stringContaining('5000 ms'),
  })
  expect(reasons).toMatchObject([{ name: 'TimeoutError' }])
  expect(vi.getTimerCount()).toBe(0)
})

test('a result that comes too late is not heard', async () => {
  vi.useFakeTimers()
  const late = gate<string>()
  const tool = { ...simple('late', () => late.promise), timeout: 10 }
  const running = outcomeOf(tool)
  await vi.advanceTimersByTimeAsync(10)
  late.open('too late')
  expect(await running).toMatchObject({ error: 'timed-out' })
})

test('a rejection that comes too late is not an unhandled one', async () => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  const controller = new AbortController()
  const { promise, reject } = Promise.withResolvers()
  const running = outcomeOf(
    simple('late', () => promise),
    {},
    { signal: controller.signal },
  )
  await settle()
  controller.abort()
  expect(await running).toMatchObject({ error: 'cancelled' })
  reject(new Error('late'))
  await settle()
  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})

test('cancelling ends what runs and what waits, in order, and nothing starts after it', async () => {
  const controller = new AbortController()
  let started = 0
  const tool = simple('step', (_args, { signal }) => {
    started++
    expect(signal.aborted).toBe(false)
    return new Promise(() => {})
  })
  const running = dispatch([tool], numbered(...Array.from({ length: 20 }, () => call('step'))), {
    signal: controller.signal,
  })
  await settle()
  controller.abort(new Error('enough'))
  const { outcomes, records } = await running
  expect(started).toBe(8)
  expect(records.map(record => record.call.id)).toEqual(Array.from({ length: 20 }, (_, i) => `c${i}`))
  expect(outcomes.every(outcome => outcome.kind === 'error' && outcome.error === 'cancelled')).toBe(true)
  expect(outcomes[0]).toMatchObject({ message: expect.stringContaining('may have taken effect') })
  expect(outcomes[19]).toMatchObject({ message: expect.stringContaining('before this call started') })
})

test('cancelled at every stage, a dispatch ends and leaves no listener and no timer behind', async () => {
  const never = new Promise<never>(() => {})
  const stages: Record<string, Partial<Turn> & { tool?: Partial<Tool> }> = {
    'before it begins': {},
    'while arguments are checked': { tool: { parse: () => never } },
    'while the tool decides about approval': { tool: { approval: () => never } },
    'while a person decides': { tool: { approval: true }, approve: () => never },
    'while it runs': {},
    'while it waits for another': { tool: { effect: 'external' } },
  }
  for (const [stage, { tool = {}, ...options }] of Object.entries(stages)) {
    const before = resources()
    const controller = new AbortController()
    const { signal } = controller
    if (stage === 'before it begins') controller.abort()
    const used = { ...hang(), timeout: 60_000, ...tool }
    const running = dispatch([used], numbered(call('hang'), call('hang'), call('hang')), {
      ...options,
      signal,
    })
    if (!signal.aborted) expect(getEventListeners(signal, 'abort'), stage).toHaveLength(1)
    await settle()
    controller.abort()
    const { outcomes } = await running
    expect(outcomes, stage).toHaveLength(3)
    for (const outcome of outcomes) expect(outcome, stage).toMatchObject({ error: 'cancelled' })
    expect(getEventListeners(signal, 'abort'), stage).toEqual([])
    // What the test runner holds may go meanwhile.
    const after = resources()
    for (const name of ['timers', 'processes', 'sockets'] as const)
      expect(after[name], `${stage}: ${name}`).toBeLessThanOrEqual(before[name])
  }
})

test('a finished dispatch leaves nothing on a signal that lives on', async () => {
  const { signal } = new AbortController()
  const before = resources()
  const quick = { ...simple('quick', async () => 1), timeout: 60_000 }
  for (let i = 0; i < 20; i++) await dispatch([quick], numbered(call('quick'), call('quick')), { signal })
  await dispatch([quick], [call('nope')], { signal })
  await dispatch([quick], [call('quick')], { signal, around: () => Promise.reject(new Error('no')) }).catch(
    () => {},
  )
  expect(getEventListeners(signal, 'abort')).toEqual([])
  expect(resources()).toEqual(before)
})

test('a result that holds itself is an error that says where', async () => {
  const cyclic: Record<string, unknown> = { list: [{}] }
  ;(cyclic.list as Record<string, unknown>[])[0] = { back: cyclic }
  expect(await outcomeOf(simple('t', () => cyclic))).toMatchObject({
    error: 'unreadable-result',
    detail: {
      problems: [{ path: 'result.list[0].back', message: expect.stringContaining('is result again') }],
    },
  })
  const shared = { a: 1 }
  expect(await outcomeOf(simple('t', () => ({ one: shared, two: shared })))).toMatchObject({ kind: 'value' })
})

test('bytes, big integers, dates, functions and the like are errors that say where and what to return', async () => {
  const problemsOf = async (value: unknown) => {
    const outcome = await outcomeOf(simple('t', () => value))
    expect(outcome).toMatchObject({ error: 'unreadable-result' })
    return (outcome as unknown as { detail: { problems: { path: string; message: string }[] } }).detail
      .problems
  }
  const [bytes] = await problemsOf(new Uint8Array(3))
  expect(bytes).toMatchObject({ path: 'result', message: expect.stringContaining("type: 'file'") })
  expect((await problemsOf({ file: { bytes: Buffer.from('x') } }))[0]?.path).toBe('result.file.bytes')
  expect(
    (await problemsOf({ n: 10n, at: new Date(0), f() {}, nan: NaN })).map(problem => problem.path).sort(),
  ).toEqual(['result.at', 'result.f', 'result.n', 'result.nan'])
  const broken = { content: [{ type: 'image', data: 'AQI=' }, { type: 'text' }] }
  expect((await problemsOf(broken)).map(problem => problem.path).sort()).toEqual([
    'result.content[0].mediaType',
    'result.content[1].text',
  ])
  const image = { type: 'image', mediaType: 'image/png' }
  const odd = {
    content: [
      { ...image, data: 'not base64' },
      { ...image, url: 5 },
      { ...image, data: 'AQI=', size: 3 },
      { type: 'file', mediaType: 'text/plain', data: 'AQI=', name: '' },
    ],
  }
  expect((await problemsOf(odd)).map(problem => problem.path).sort()).toEqual([
    'result.content[0].data',
    'result.content[1].url',
    'result.content[2].size',
    'result.content[3].name',
  ])
})

test('a result that throws when it is read is an error too', async () => {
  const trap = {
    get value() {
      throw new Error('gotcha')
    },
  }
  expect(await outcomeOf(simple('t', () => trap))).toMatchObject({
    error: 'unreadable-result',
    message: expect.stringContaining('gotcha'),
  })
  const error = Object.defineProperty(new Error('x'), 'message', {
    get() {
      throw new Error('gotcha')
    },
  })
  expect(await outcomeOf(simple('t', () => Promise.reject(error)))).toMatchObject({ error: 'threw' })
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  expect(await outcomeOf(simple('t', () => Promise.reject(proxy)))).toMatchObject({ error: 'threw' })
})

test('an object that merely has a content is a value', async () => {
  for (const value of [
    { content: [] },
    { content: 'text' },
    { content: [{ type: 'text', text: 'a' }], rows: 1 },
  ] as Json[]) {
    expect(await outcomeOf(simple('t', () => value))).toEqual({ kind: 'value', value })
  }
})

test('50 MB come back whole', async () => {
  const text = 'x'.repeat(50_000_000)
  expect(await outcomeOf(simple('t', () => text))).toEqual({ kind: 'value', value: text })
  const rows = Array.from({ length: 500_000 }, (_, i) => ({ i, text: 'x'.repeat(80) }))
  const outcome = await outcomeOf(simple('t', () => rows))
  expect(outcome.kind === 'value' && (outcome.value as Json[]).length).toBe(500_000)
})

test('500 calls in one turn all end, in order, with a limit, a single listener and no pile of timers', async () => {
  const { signal } = new AbortController()
  let most = 0
  const names = ['free', 'file', 'alone'] as const
  const work = async () => {
    most = Math.max(most, getEventListeners(signal, 'abort').length)
    return 1
  }
  const tools = [
    simple('free', work, { timeout: 10_000 }),
    simple('file', work, { effect: 'workspace', resource: args => `f${(args as { n: number }).n % 10}` }),
    simple('alone', work, { effect: 'external' }),
  ]
  const calls = numbered(...Array.from({ length: 500 }, (_, n) => call(names[n % 3] as string, { n })))
  const spent = process.cpuUsage()
  const { records } = await dispatch(tools, calls, { signal })
  expect(process.cpuUsage(spent).user / 1000).toBeLessThan(2000)
  expect(records.map(record => record.call.id)).toEqual(calls.map(part => part.id))
  expect(most).toBe(1)
})
