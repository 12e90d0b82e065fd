import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type McpServer, type McpTools, mcpTools } from '../../src/tool/mcp/mcp-tools.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { toolTable } from '../../src/tool/tool.ts'
import { call, dispatch, numbered, outcomeOf } from './make.ts'

const packages = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol')
const everything = join(packages, 'server-everything/dist/index.js')
const named = (server: McpTools, name: string) => server.tools.find(tool => tool.name === name) as Tool

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}

async function listen(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [everything, 'streamableHttp'], {
    env: { PATH: process.env.PATH, PORT: `${port}` },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (data: Buffer) => data.includes('listening on port') && resolve())
    child.once('exit', code => reject(new Error(`the server ended with ${code}`)))
  })
  return child
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise(resolve => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
}

let port: number
let web: ChildProcess | undefined
beforeAll(async () => {
  port = await freePort()
  web = await listen(port)
})
afterAll(() => end(web))

const ways: Record<string, () => McpServer> = {
  'standard input and output': () => ({ command: process.execPath, args: [everything, 'stdio'] }),
  'streamable HTTP': () => ({ url: `http://127.0.0.1:${port}/mcp`, headers: { 'x-test': 'yes' } }),
}

for (const [way, server] of Object.entries(ways)) {
  describe(`server-everything over ${way}`, () => {
    let used: McpTools
    beforeAll(async () => {
      used = await mcpTools(server(), { trustHints: true })
    })
    afterAll(() => used.close())

    test('lists its tools with their schemas, without a warning', () => {
      expect(used.warnings).toEqual([])
      expect(used.tools.length).toBeGreaterThan(8)
      expect(named(used, 'echo').parameters).toMatchObject({ type: 'object', required: ['message'] })
      expect(toolTable(used.tools).size).toBe(used.tools.length)
    })

    test('answers text, and arguments that do not fit never reach it', async () => {
      expect(await outcomeOf(named(used, 'echo'), { message: 'hello' })).toMatchObject({
        value: 'Echo: hello',
      })
      expect(await outcomeOf(named(used, 'echo'), { message: 3 })).toMatchObject({
        error: 'invalid-arguments',
      })
    })

    test('many calls share the connection', async () => {
      const sum = { ...named(used, 'get-sum'), effect: 'pure' as const }
      const calls = numbered(...Array.from({ length: 50 }, (_, i) => call('get-sum', { a: i, b: 1 })))
      const { outcomes } = await dispatch([sum], calls, { limit: 25 })
      for (const [i, outcome] of outcomes.entries()) {
        expect(outcome.kind === 'value' && outcome.value).toContain(`is ${i + 1}.`)
      }
    })

    test('gives structured results, images and resources', async () => {
      const structured = await outcomeOf(named(used, 'get-structured-content'), { location: 'Chicago' })
      expect(structured).toMatchObject({
        value: { temperature: expect.any(Number), conditions: expect.any(String) },
      })
      const image = await outcomeOf(named(used, 'get-tiny-image'))
      expect(image.kind === 'value' && image.content?.map(part => part.type)).toEqual([
        'text',
        'image',
        'text',
      ])
      const resource = await outcomeOf(named(used, 'get-resource-reference'), {
        resourceType: 'Text',
        resourceId: 1,
      })
      expect(resource.kind === 'value' && resource.value).toContain('demo://resource/')
      const links = await outcomeOf(named(used, 'get-resource-links'), { count: 2 })
      expect(links.kind === 'value' && links.value).toContain('[resource demo://')
    })

    test('reports progress, and is cancelled in the middle', async () => {
      const long = named(used, 'trigger-long-running-operation')
      const heard: unknown[] = []
      const onProgress = (_callId: string, data: unknown) => void heard.push(data)
      const outcome = await outcomeOf(long, { duration: 0.2, steps: 2 }, { onProgress })
      expect(outcome).toMatchObject({ value: expect.stringContaining('completed') })
      expect(heard).toEqual([
        { progress: 1, total: 2 },
        { progress: 2, total: 2 },
      ])
      const controller = new AbortController()
      const stopped = outcomeOf(
        long,
        { duration: 600, steps: 6000 },
        { signal: controller.signal, onProgress: () => controller.abort() },
      )
      expect(await stopped).toMatchObject({ error: 'cancelled' })
      expect(await outcomeOf(named(used, 'echo'), { message: 'still here' })).toMatchObject({ kind: 'value' })
    })
  })
}

test('a web server that was restarted is found again by the next call', async () => {
  const port = await freePort()
  let child = await listen(port)
  try {
    await using server = await mcpTools({ url: `http://127.0.0.1:${port}/mcp` })
    const echo = () => outcomeOf(named(server, 'echo'), { message: 'hi' })
    expect(await echo()).toMatchObject({ value: 'Echo: hi' })
    await end(child)
    expect(await echo()).toMatchObject({ error: 'threw', message: expect.stringContaining('ECONNREFUSED') })
    child = await listen(port)
    expect(await echo()).toMatchObject({ value: 'Echo: hi' })
  } finally {
    await end(child)
  }
})

test('server-filesystem writes and reads in the order asked, inside its folder', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'openrath-mcp-')))
  try {
    writeFileSync(join(folder, 'old.txt'), 'old')
    const args = [join(packages, 'server-filesystem/dist/index.js'), folder]
    await using server = await mcpTools({ command: process.execPath, args }, { prefix: 'fs_' })
    expect(server.warnings).toEqual([])
    const path = join(folder, 'new.txt')
    const { outcomes } = await dispatch(
      server.tools,
      numbered(
        call('fs_write_file', { path, content: 'new' }),
        call('fs_read_text_file', { path }),
        call('fs_list_directory', { path: folder }),
        call('fs_read_text_file', { path: '/etc/passwd' }),
      ),
    )
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(outcomes[1]).toMatchObject({ value: { content: 'new' } })
    expect(JSON.stringify(outcomes[2])).toMatch(/new\.txt[\s\S]*old\.txt/)
    expect(outcomes[3]).toMatchObject({
      kind: 'error',
      error: 'threw',
      message: expect.stringContaining('denied'),
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

function held(): string[] {
  return process.getActiveResourcesInfo().filter(name => name !== 'Immediate')
}

function added(now: readonly string[], before: readonly string[]): string[] {
  const left = [...before]
  return now.filter(name => !left.includes(name) || !left.splice(left.indexOf(name), 1))
}

test('nothing is left behind: no process and no timer', async () => {
  for (const server of Object.values(ways)) {
    const before = held()
    const used = await mcpTools(server())
    await outcomeOf(named(used, 'echo'), { message: 'hi' })
    await used.close()
    // A poll with a timer would count itself.
    const end = Date.now() + 300_000
    while (added(held(), before).length > 0 && Date.now() < end) await new Promise(setImmediate)
    expect(added(held(), before)).toEqual([])
  }
})
