import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Json } from '../../src/base/json.ts'
import { type McpOptions, mcpTools } from '../../src/run/mcp-tools.ts'
import type { McpTools } from '../../src/tool/mcp/mcp-tools.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { testHere } from '../sandbox/isolated-here.ts'
import { outcomeOf } from '../tool/make.ts'

const modules = realpathSync(join(import.meta.dirname, '../../node_modules'))
const filesystem = join(modules, '@modelcontextprotocol/server-filesystem/dist/index.js')

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'openrath-mcp-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The official server for files, which is told that all of the machine is its own. */
async function filesOf(cwd: string, options: McpOptions): Promise<McpTools> {
  const server = await mcpTools({ command: process.execPath, args: [filesystem, '/'], cwd }, options)
  onTestFinished(() => server.close())
  return server
}

async function use(server: McpTools, name: string, args: Json): Promise<string> {
  const tool = server.tools.find(one => one.name === name) as Tool
  return JSON.stringify(await outcomeOf(tool, args))
}

testHere('a server in a sandbox works in its folder, and neither sees nor writes anything else', async () => {
  const [cwd, outside] = [folder(), folder()]
  const secret = join(outside, 'secret.txt')
  writeFileSync(secret, 'not-for-servers')
  writeFileSync(join(cwd, 'door.txt'), 'The door sticks.')
  const free = await filesOf(cwd, {})
  expect(await use(free, 'read_text_file', { path: secret })).toContain('not-for-servers')
  const held = await filesOf(cwd, { sandbox: { backend: 'isolated', read: [modules] } })
  expect(await use(held, 'read_text_file', { path: join(cwd, 'door.txt') })).toContain('The door sticks.')
  expect(await use(held, 'read_text_file', { path: secret })).not.toContain('not-for-servers')
  await use(held, 'write_file', { path: join(cwd, 'note.txt'), content: 'From inside.' })
  expect(readFileSync(join(cwd, 'note.txt'), 'utf8')).toBe('From inside.')
  for (const path of [`/proc/${process.pid}/environ`, '/etc/shadow'])
    expect(await use(held, 'read_text_file', { path })).toMatch(/error|threw/)
})

testHere('a server in a sandbox that is closed, or cannot be started, leaves nothing behind', async () => {
  const cwd = folder()
  const options: McpOptions = { sandbox: { backend: 'isolated', read: [modules] } }
  const running = () => process.getActiveResourcesInfo().filter(name => name === 'ProcessWrap').length
  const held = await mcpTools({ command: process.execPath, args: [filesystem, '/'], cwd }, options)
  await held.close()
  await expect.poll(running).toBe(0)
  const lost = mcpTools({ command: 'no-such-program', cwd }, { sandbox: 'isolated' })
  await expect(lost).rejects.toMatchObject({ code: 'mcp-unreachable' })
})

test('what cannot hold a server is refused', async () => {
  const refused = [
    [{ command: 'x' }, { sandbox: 'nowhere' }, 'unknown-sandbox'],
    [{ command: 'x' }, { sandbox: 7 }, 'invalid-argument'],
    [{ url: 'http://127.0.0.1:9/' }, { sandbox: 'isolated' }, 'invalid-argument'],
  ] as const
  for (const [server, options, code] of refused)
    await expect(mcpTools(server, options as McpOptions)).rejects.toMatchObject({ code })
})
