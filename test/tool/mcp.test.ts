import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { foldersOf } from '../../src/base/programs.ts'
import { readListing } from '../../src/tool/mcp/listing.ts'
import { type McpOptions, type McpTools, mcpTools } from '../../src/tool/mcp/mcp-tools.ts'
import { ProcessTransport } from '../../src/tool/mcp/process-transport.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { refusalOf } from '../session/make.ts'
import { call, dispatch, numbered, outcomeOf, settle } from './make.ts'

const program = join(import.meta.dirname, 'servers/odd.ts')
const open: McpTools[] = []

async function odd(
  args: string[] = [],
  options: McpOptions = {},
  env: Record<string, string> = {},
): Promise<McpTools> {
  const server = await mcpTools({ command: process.execPath, args: [program, ...args], env }, options)
  open.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(open.splice(0).map(server => server.close()))
})

const named = (server: McpTools, name: string) => server.tools.find(tool => tool.name === name) as Tool
const processes = () => process.getActiveResourcesInfo().filter(name => name === 'ProcessWrap').length

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(resolve => setTimeout(resolve, 5))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('all pages of tools are listed, under names that every provider takes', async () => {
  const server = await odd([], { prefix: 'odd_', exclude: ['cr*'] })
  expect(server.name).toBe('odd')
  expect(server.tools.map(tool => tool.name)).toContain('odd_bad_schema_')
  expect(server.tools.map(tool => tool.name)).not.toContain('odd_crash')
  expect(server.tools).toHaveLength(19)
  expect(await outcomeOf(named(server, 'odd_echo'), { text: 'hi' })).toEqual({
    kind: 'value',
    value: 'hi',
    content: [{ type: 'text', text: 'hi' }],
  })
  const few = await odd([], { include: ['echo', 'fa?l'] })
  expect(few.tools.map(tool => tool.name)).toEqual(['echo', 'fail'])
})

test('a list that never ends is read once', async () => {
  const server = await odd(['endless'], { include: ['nothing'] })
  expect(server.tools).toEqual([])
})

test('tools that cannot be told apart are refused', async () => {
  const error = await refusalOf(odd(['clash']))
  expect(error.message).toContain('"a b" and "a.b" are both called a_b')
  const server = await odd(['clash'], { exclude: ['a b'] })
  expect(named(server, 'a_b')).toBeDefined()
})

test('one connection serves many calls at a time', async () => {
  const server = await odd([], { effect: 'read' })
  const calls = numbered(...Array.from({ length: 200 }, (_, i) => call('echo', { text: `${i}` })))
  const { outcomes } = await dispatch(server.tools, calls, { limit: 50 })
  expect(outcomes.map(outcome => outcome.kind === 'value' && outcome.value)).toEqual(
    calls.map((_, i) => `${i}`),
  )
  await expect.poll(processes).toBe(1)
})

test('what the server says about its effects counts only when it is trusted', async () => {
  const effects = async (options: McpOptions) => {
    const server = await odd([], options)
    return ['echo', 'environment', 'add_tool'].map(name => named(server, name).effect)
  }
  expect(await effects({})).toEqual(['external', 'external', 'external'])
  expect(await effects({ trustHints: true })).toEqual(['external', 'read', 'idempotent'])
  expect(await effects({ effect: 'workspace' })).toEqual(['workspace', 'workspace', 'workspace'])
  expect(await effects({ effect: ({ name }) => (name === 'echo' ? 'pure' : 'external') })).toEqual([
    'pure',
    'external',
    'external',
  ])
})

test('the list of tools is live', async () => {
  const server = await odd()
  const before = server.tools
  let changes = 0
  const listening = server.onChange(() => {
    changes++
    throw new Error('a listener that throws')
  })
  await outcomeOf(named(server, 'add_tool'))
  await until(() => changes === 1)
  expect(server.tools).toHaveLength(before.length + 1)
  expect(await outcomeOf(named(server, 'added_20'))).toMatchObject({ value: 'ran added_20' })
  listening[Symbol.dispose]()
  await outcomeOf(named(server, 'add_tool'))
  await until(() => server.tools.length === before.length + 2)
  expect(changes).toBe(1)
})

test('a flood of changes is one list and a second, not one for each', async () => {
  const server = await odd()
  const before = server.tools.length
  let changes = 0
  server.onChange(() => void changes++)
  await outcomeOf(named(server, 'flood'))
  await until(() => server.tools.length === before + 100)
  // As many questions as it would take to list everything a dozen times.
  const { outcomes } = await dispatch(
    server.tools,
    numbered(...Array.from({ length: 400 }, () => call('lists'))),
  )
  const last = outcomes.at(-1)
  expect(last?.kind === 'value' && Number(last.value)).toBeLessThan(8)
  expect(changes).toBeLessThan(8)
})

test('a line that comes in many pieces is looked through once', async () => {
  const sdk = await import('@modelcontextprotocol/client')
  let reads = 0
  class Counting extends sdk.ReadBuffer {
    override append(data: Buffer) {
      reads++
      super.append(data)
    }
  }
  const line = `process.stdout.write(JSON.stringify({ jsonrpc: '2.0', method: 'x', params: { a: 'x'.repeat(4e6) } }) + '\\n')`
  const transport = new ProcessTransport(
    { command: process.execPath, args: ['-e', line] },
    { ...sdk, ReadBuffer: Counting },
  )
  const { promise, resolve } = Promise.withResolvers<object>()
  transport.onmessage = resolve
  await transport.start()
  expect(JSON.stringify(await promise).length).toBeGreaterThan(4e6)
  expect(reads).toBe(1)
  await transport.close()
})

test('closing does not wait for a server that is being started and says nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-mcp-'))
  const server = await odd(['once', join(folder, 'started')], { connectTimeout: 60_000 })
  await outcomeOf(named(server, 'crash'))
  const running = outcomeOf(named(server, 'echo'), { text: 'hi' })
  await expect.poll(processes).toBe(1)
  await server.close()
  expect(await running).toMatchObject({ error: 'threw' })
  await expect.poll(processes).toBe(0)
  rmSync(folder, { recursive: true })
})

test('the server gets a clean environment and what it was given, and no key of ours', async () => {
  process.env.OPENAI_API_KEY = 'sk-secret'
  process.env.SOMETHING_ELSE = 'private'
  const server = await odd([], {}, { ONLY: 'this' })
  const outcome = await outcomeOf(named(server, 'environment'))
  delete process.env.OPENAI_API_KEY
  delete process.env.SOMETHING_ELSE
  const environment = (outcome.kind === 'value' ? outcome.value : {}) as Record<string, string>
  expect(environment).toMatchObject({ ONLY: 'this', PATH: foldersOf(process.env.PATH ?? '').join(':') })
  expect(JSON.stringify(environment)).not.toMatch(/sk-secret|private/)
})

test('a failure that the server reports is an error, and so is a refusal', async () => {
  const server = await odd()
  expect(await outcomeOf(named(server, 'fail'))).toMatchObject({
    kind: 'error',
    error: 'threw',
    message: 'the disk is full',
  })
  expect(await outcomeOf(named(server, 'refuse'))).toMatchObject({
    error: 'threw',
    message: expect.stringContaining('not today'),
  })
  expect(await outcomeOf(named(server, 'echo'), { text: 1 })).toMatchObject({ error: 'invalid-arguments' })
})

test('images, sounds, resources, links and what nobody knows become parts', async () => {
  const server = await odd()
  const outcome = await outcomeOf(named(server, 'parts'))
  expect(outcome.kind === 'value' && outcome.content).toEqual([
    { type: 'text', text: 'one' },
    { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
    { type: 'file', mediaType: 'audio/wav', data: 'AQID', name: 'audio' },
    { type: 'text', text: '[image left out: its data is not base64]' },
    { type: 'text', text: '[file:///a.txt]\ninside a' },
    { type: 'text', text: '[file:///b.bin]' },
    { type: 'file', mediaType: 'application/octet-stream', data: 'AQID', name: 'file:///b.bin' },
    { type: 'text', text: '[resource file:///c.txt: c, text/plain]' },
    { type: 'text', text: '{"type":"hologram","depth":3}' },
  ])
  expect(await outcomeOf(named(server, 'garbage'))).toEqual({ kind: 'value', value: null })
  const big = await outcomeOf(named(server, 'big'))
  expect(big.kind === 'value' && String(big.value).length).toBe(20_000_000)
})

test('a server that lies about schemas loses the schema and not the tool', async () => {
  const server = await odd()
  for (const name of ['bad_schema_', 'no_schema']) {
    expect(named(server, name).parameters).toEqual({ type: 'object', additionalProperties: true })
    expect(await outcomeOf(named(server, name), { any: 1 })).toMatchObject({ kind: 'value' })
  }
  expect(server.warnings.join('\n')).toMatch(
    /bad schema!: its input schema[\s\S]*no_schema[\s\S]*bad_output: its output/,
  )
  expect(await outcomeOf(named(server, 'liar'))).toMatchObject({
    error: 'unreadable-result',
    message: expect.stringContaining('structuredContent.n'),
  })
  expect(await outcomeOf(named(server, 'silent_liar'))).toMatchObject({ error: 'unreadable-result' })
  expect(await outcomeOf(named(server, 'bad_output'))).toMatchObject({ kind: 'value' })
  expect(await outcomeOf(named(server, 'honest'))).toEqual({
    kind: 'value',
    value: { n: 3 },
    content: [{ type: 'text', text: '{"n":3}' }],
  })
})

test('a schema that leads elsewhere, or is deeper than a request may be, is not used', () => {
  const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`)
  const listed = [
    { type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } },
    { type: 'object', properties: { a: { $id: 'http://[' } } },
    { type: 'object', examples: deep },
  ].map((inputSchema, i) => ({ name: `t${i}`, inputSchema }))
  const { tools, warnings } = readListing(listed, {})
  expect(tools.map(tool => tool.parameters)).toEqual(
    listed.map(() => ({ type: 'object', additionalProperties: true })),
  )
  expect(warnings).toHaveLength(3)
})

test('a hostile pattern in a schema is shown to the model and never run', async () => {
  const server = await odd()
  const hostile = named(server, 'hostile')
  expect(hostile.parameters).toMatchObject({ properties: { a: { pattern: '^(a+)+$' } } })
  // Run, it would take longer than anybody waits.
  expect(await outcomeOf(hostile, { a: `${'a'.repeat(40)}!` })).toMatchObject({ kind: 'value' })
})

test('a server that crashes fails the calls it was running, and the next call starts it again', async () => {
  const server = await odd([], { effect: 'read' })
  const { outcomes } = await dispatch(server.tools, numbered(call('hang'), call('crash')))
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({
      error: 'threw',
      message: expect.stringMatching(/odd ended while .* may have taken effect/),
    })
  }
  expect(outcomes[1]).toMatchObject({ message: expect.stringContaining('exit code 7: out of memory') })
  const again = await dispatch(
    server.tools,
    numbered(call('echo', { text: 'a' }), call('echo', { text: 'b' })),
  )
  expect(again.outcomes).toMatchObject([{ value: 'a' }, { value: 'b' }])
  await expect.poll(processes).toBe(1)
})

test('a server that hangs is timed out and told to cancel, and goes on serving', async () => {
  const server = await odd([], { timeout: 60_000 })
  expect(named(server, 'hang').timeout).toBe(60_000)
  expect(await outcomeOf({ ...named(server, 'hang'), timeout: 100 })).toMatchObject({ error: 'timed-out' })
  const controller = new AbortController()
  const slow = { ...named(server, 'hang'), timeout: 60_000 }
  const running = outcomeOf(
    slow,
    {},
    { signal: controller.signal, onStart: () => setTimeout(() => controller.abort(new Error('enough')), 50) },
  )
  expect(await running).toMatchObject({ error: 'cancelled' })
  const outcome = await outcomeOf(named(server, 'cancelled'))
  expect(outcome.kind === 'value' && outcome.value).toHaveLength(2)
})

test('a server that does not start is an error that says what it said', async () => {
  const before = processes()
  const exits = await refusalOf(odd(['exits']))
  expect(exits).toMatchObject({ code: 'mcp-unreachable', retry: 'after', blame: 'tool' })
  expect(exits.message).toContain('cannot find my licence')
  expect((await refusalOf(odd(['mute'], { connectTimeout: 200 }))).message).toContain('could not be reached')
  expect((await refusalOf(mcpTools({ command: 'no-such-program-here' }))).message).toContain('ENOENT')
  expect((await refusalOf(mcpTools({ url: 'http://127.0.0.1:9/mcp' }))).message).toContain('127.0.0.1:9')
  expect((await refusalOf(mcpTools({} as never))).code).toBe('invalid-argument')
  const controller = new AbortController()
  const given = odd(['mute'], { signal: controller.signal })
  setTimeout(() => controller.abort(), 100)
  expect((await refusalOf(given)).code).toBe('mcp-unreachable')
  await expect.poll(processes).toBeLessThanOrEqual(before)
})

test('a server that prints where it should not is understood all the same', async () => {
  const server = await odd(['noisy'])
  expect(await outcomeOf(named(server, 'echo'), { text: 'hi' })).toMatchObject({ value: 'hi' })
})

test('closing takes the server and everything it started with it, however stubborn', async () => {
  for (const note of ['meek', 'stubborn']) {
    const server = await odd(['grandchild', note])
    const pid = Number(server.tools.at(-1)?.name.slice('pid_'.length))
    expect(isAlive(pid)).toBe(true)
    await server.close()
    await until(() => !isAlive(pid))
    await expect.poll(processes).toBe(0)
    await server.close()
    expect(await outcomeOf(named(server, 'echo'), { text: 'hi' })).toMatchObject({
      error: 'threw',
      message: expect.stringContaining('was closed'),
    })
  }
})

test('await using closes it, also with calls still running, and leaves no process and no timer', async () => {
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  let running: Promise<unknown> | undefined
  {
    await using server = await odd()
    running = outcomeOf(named(server, 'hang'))
    await outcomeOf({ ...named(server, 'echo'), effect: 'pure' }, { text: 'x' })
  }
  expect(await running).toMatchObject({ error: 'threw' })
  await expect.poll(processes).toBe(0)
  await settle()
  expect(timers()).toBeLessThanOrEqual(before)
  expect(process.listenerCount('exit')).toBe(
    process.listeners('exit').filter(listener => listener.name !== 'killAll').length,
  )
})
