import { posix } from 'node:path'
import { expect, test } from 'vitest'
import type { ToolOutcome } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import type { Tool } from '../../src/tool/spec.ts'
import type { CallRecord } from '../../src/tool/turn.ts'
import { call, dispatch, gate, numbered, outcomeOf, settle, simple } from './make.ts'

/** Tools over files in a map, each slow to write and quick to read. */
function workshop() {
  const files = new Map<string, string>()
  const log: string[] = []
  const write = simple(
    'write',
    async args => {
      const { path, text } = args as { path: string; text: string }
      log.push(`write ${path}`)
      // The first write is the slowest, so that a race would let it win.
      for (let i = Number(text) || 0; i < 3; i++) await settle()
      files.set(posix.normalize(path), text)
      return { written: text.length }
    },
    { effect: 'workspace', resource: args => (args as { path: string }).path },
  )
  const run = simple('run', () => [...files.keys()].join(), { effect: 'workspace' })
  return { files, log, write, run }
}

test('write file then run command in one turn always sees the file', async () => {
  const { write, run } = workshop()
  const calls = numbered(
    call('write', { path: 'a', text: 'x' }),
    call('write', { path: 'b', text: 'y' }),
    call('run'),
    call('write', { path: 'c', text: 'z' }),
    call('run'),
  )
  const { outcomes } = await dispatch([write, run], calls)
  expect(outcomes.map(outcome => outcome.kind === 'value' && outcome.value)).toEqual([
    { written: 1 },
    { written: 1 },
    'a,b',
    { written: 1 },
    'a,b,c',
  ])
})

test('a.txt and ./a.txt are one file: the last write wins', async () => {
  const { write, files } = workshop()
  const paths = ['a.txt', './a.txt', 'b/../a.txt']
  const calls = numbered(...paths.map((path, i) => call('write', { path, text: `${i}` })))
  const started: string[] = []
  await dispatch([write], calls, { onStart: ({ call: { id } }) => void started.push(id) })
  expect(started).toEqual(['c0', 'c1', 'c2'])
  expect([...files]).toEqual([['a.txt', '2']])
})

test('results land in the order asked, each as soon as all before it are done', async () => {
  const gates = [gate(), gate(), gate()]
  const wait = simple('wait', async args => {
    const { n } = args as { n: number }
    await gates[n]?.promise
    return n
  })
  const told: unknown[] = []
  const running = dispatch(
    [wait],
    numbered(call('wait', { n: 0 }), call('wait', { n: 1 }), call('wait', { n: 2 })),
    {
      onResult: ({ outcome }) => void told.push(outcome.kind === 'value' && outcome.value),
    },
  )
  gates[2]?.open()
  await settle()
  expect(told).toEqual([])
  gates[0]?.open()
  await settle()
  expect(told).toEqual([0])
  gates[1]?.open()
  await running
  expect(told).toEqual([0, 1, 2])
})

test('a slow onResult is waited for before the next result is told', async () => {
  const quick = simple('quick', () => 1)
  let isTelling = false
  await dispatch([quick], numbered(call('quick'), call('quick'), call('quick')), {
    async onResult() {
      expect(isTelling).toBe(false)
      isTelling = true
      await settle()
      isTelling = false
    },
  })
})

test('one failing call does not disturb its siblings', async () => {
  const tools = [
    simple('fine', () => 'fine'),
    simple('throws', () => {
      throw new TypeError('no such row')
    }),
    simple('rejects', async () =>
      Promise.reject(new Error('fetch failed', { cause: new Error('ECONNREFUSED') })),
    ),
    simple('odd', () => {
      throw { not: 'an error' }
    }),
    simple('badly', () => 1, {
      resource: () => {
        throw new Error('which?')
      },
    }),
  ]
  const calls = numbered(
    call('throws'),
    call('fine'),
    call('rejects'),
    call('nope'),
    call('odd'),
    call('badly'),
    call('fine', 'not {json'),
  )
  const { outcomes } = await dispatch(tools, calls)
  expect(outcomes).toMatchObject([
    { error: 'threw', message: 'TypeError: no such row' },
    { kind: 'value', value: 'fine' },
    { error: 'threw', message: 'Error: fetch failed (ECONNREFUSED)' },
    { error: 'unknown-tool' },
    { error: 'threw', message: '{ not }' },
    { error: 'threw', message: 'Error: which?' },
    { error: 'invalid-arguments', message: expect.stringContaining('not {json') },
  ])
  expect(JSON.stringify(outcomes)).not.toMatch(/\.ts:\d+/)
})

test('an unknown tool is answered with the nearest names', async () => {
  const tools = ['read_workspace_file', 'write_workspace_file', 'run_shell_command', 'search'].map(name =>
    simple(name, () => 1),
  )
  const say = async (name: string) => (await dispatch(tools, [call(name)])).outcomes[0]
  expect(await say('readWorkspaceFile')).toMatchObject({
    error: 'unknown-tool',
    detail: { nearest: ['read_workspace_file', 'write_workspace_file'] },
  })
  expect(await say('serch')).toMatchObject({ message: expect.stringContaining('Did you mean search?') })
  expect(await say('zzz')).toMatchObject({
    message: expect.stringContaining('There are read_workspace_file'),
  })
  expect((await dispatch([], [call('x')])).outcomes[0]).toMatchObject({
    message: expect.stringContaining('no tools'),
  })
})

test('arguments that are no object are an answer, and none at all are an empty object', async () => {
  const echo = simple('echo', args => args as object)
  for (const args of [null, 3, [1], '"{}"', '{"a":'] as const) {
    expect(await outcomeOf(echo, args)).toMatchObject({ error: 'invalid-arguments' })
  }
  for (const args of ['', ' \n']) expect(await outcomeOf(echo, args)).toEqual({ kind: 'value', value: {} })
})

test('the door wraps every execution and may know the outcome already', async () => {
  let ran = 0
  const tools = [simple('count', () => ++ran)]
  const seen: string[] = []
  const { outcomes, records } = await dispatch(tools, numbered(call('count'), call('count')), {
    around: async ({ call: { id }, tool, args }, run) => {
      seen.push(`${id} ${tool.name} ${JSON.stringify(args)}`)
      const outcome = id === 'c0' ? ({ kind: 'value', value: 'recorded' } as const) : await run()
      return { outcome, durationMs: id === 'c0' ? 0 : 7, evidence: { ranOn: { id } } }
    },
  })
  expect(seen).toEqual(['c0 count {}', 'c1 count {}'])
  expect(outcomes).toEqual([
    { kind: 'value', value: 'recorded' },
    { kind: 'value', value: 1 },
  ])
  expect(records[0]?.durationMs).toBe(0)
  expect(records[1]).toMatchObject({ durationMs: 7, evidence: { ranOn: { id: 'c1' } } })
})

test('a door that fails rejects the dispatch, once the calls that do not depend on that one have ended', async () => {
  const done: string[] = []
  const tools = [
    simple('a', () => 1, { resource: () => 'x' }),
    simple('b', async () => {
      await settle()
      done.push('b')
    }),
    simple('c', () => void done.push('c'), { resource: () => 'x' }),
  ]
  const told: CallRecord[] = []
  const failing = dispatch(tools, numbered(call('b'), call('a'), call('c'), call('b')), {
    around: async ({ tool }, run) => {
      if (tool.name === 'a') throw new Error('the journal is full')
      return { outcome: await run(), durationMs: 0 }
    },
    onResult: record => void told.push(record),
  })
  await expect(failing).rejects.toThrow('the journal is full')
  expect(done).toEqual(['b', 'b'])
  expect(told.map(record => record.call.id)).toEqual(['c0'])
})

test('when results cannot be told, nothing new starts', async () => {
  let ran = 0
  const step = simple('step', () => ++ran, { effect: 'external' })
  const failing = dispatch([step], numbered(...Array.from({ length: 5 }, () => call('step'))), {
    onResult() {
      throw new Error('the store is gone')
    },
  })
  await expect(failing).rejects.toThrow('the store is gone')
  expect(ran).toBeLessThan(3)
})

test('progress reaches the listener while the call runs and not after; a listener that throws does no harm', async () => {
  const heard: unknown[] = []
  let late: () => void = () => {}
  const work = simple('work', async (_args, { progress, callId, session }) => {
    progress({ step: 1, callId, length: session.length })
    late = () => progress('late')
    return 'ok'
  })
  const outcome = await outcomeOf(
    work,
    {},
    {
      onProgress(callId, data) {
        heard.push([callId, data])
        throw new Error('listener')
      },
      onStart() {
        throw new Error('listener')
      },
    },
  )
  late()
  expect(outcome).toEqual({ kind: 'value', value: 'ok' })
  expect(heard).toEqual([['c0', { step: 1, callId: 'c0', length: 1 }]])
})

test('at most as many calls as the limit run at a time', async () => {
  let running = 0
  let most = 0
  const work = simple('work', async () => {
    most = Math.max(most, ++running)
    await settle()
    running--
  })
  const calls = numbered(...Array.from({ length: 30 }, () => call('work')))
  await dispatch([work], calls)
  expect(most).toBe(8)
  most = 0
  await dispatch([work], calls, { limit: 3 })
  expect(most).toBe(3)
  await expect(dispatch([work], calls, { limit: 0 })).rejects.toThrow('limit')
})

test('a tool may dispatch calls of its own without a deadlock, whatever the limit', async () => {
  const leaf = simple('leaf', async () => {
    await settle()
    return 1
  })
  const nested: Tool = simple('nested', async (_args, { session, signal }) => {
    const { outcomes } = await dispatch([leaf], numbered(call('leaf'), call('leaf')), {
      session: session.fork(),
      signal,
      limit: 1,
    })
    return outcomes.length
  })
  const { outcomes } = await dispatch(
    [nested],
    numbered(...Array.from({ length: 20 }, () => call('nested'))),
    { limit: 1 },
  )
  expect(outcomes).toEqual(Array.from({ length: 20 }, (): ToolOutcome => ({ kind: 'value', value: 2 })))
})

test('outcomes of every kind can be recorded', async () => {
  const tools = [
    simple('value', () => ({ a: [1, 'two', null] })),
    simple('parts', () => ({
      content: [
        { type: 'text', text: 'seen' },
        { type: 'image', mediaType: 'image/png', data: new Uint8Array([1, 2]) },
      ],
    })),
    simple('nothing', () => undefined),
  ]
  let session = Session.fromUserMessage('Go.').append({
    kind: 'assistant',
    toolCalls: [
      { id: 'c0', name: 'value', args: {} },
      { id: 'c1', name: 'parts', args: {} },
      { id: 'c2', name: 'nothing', args: {} },
      { id: 'c3', name: 'gone', args: 'raw' },
    ],
  })
  const calls = session.pending.flatMap(pending => (pending.kind === 'tool-call' ? [pending.call] : []))
  await dispatch(tools, calls, {
    session,
    onResult({ call: { id: callId, name }, args, outcome, durationMs, approvals }) {
      session = session.append(...approvals, {
        kind: 'tool-result',
        callId,
        tool: name,
        args,
        outcome,
        durationMs,
      })
    },
  })
  expect(session.pending).toEqual([])
  expect(session.verify().ok).toBe(true)
  expect(session.chunks.at(3)).toMatchObject({
    outcome: { value: 'seen', content: [{}, { type: 'image', data: 'AQI=' }] },
  })
  expect(session.chunks.at(4)).toMatchObject({ outcome: { kind: 'value', value: null } })
})
