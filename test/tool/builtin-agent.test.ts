import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { configure } from '../../src/run/runtime.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import type { SandboxBackend, SandboxSpec } from '../../src/sandbox/spec.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { simple } from './make.ts'

const opened: (SandboxSpec | undefined)[] = []
const backend: SandboxBackend = {
  ...localBackend(),
  open(spec, options) {
    opened.push(spec)
    return localBackend().open(spec, options)
  },
}
const folder = mkdtempSync(join(tmpdir(), 'openrath-builtin-'))
const runtime = configure({ store: 'memory:', sandboxes: [backend] })
afterAll(async () => {
  await runtime.close()
  rmSync(folder, { recursive: true, force: true })
})

const names = ({ tools }: Agent) => tools.map(({ name }) => name)

test('an agent has all built-in tools, those named, or none', () => {
  const model = scripted([])
  expect(names(new Agent('', { model }))).toHaveLength(8)
  const some = new Agent('', { model, builtins: ['run_code', 'search_workspace'] })
  expect(names(some)).toEqual(['run_code', 'search_workspace'])
  expect(names(new Agent('', { model, builtins: false }))).toEqual([])
  expect(() => new Agent('', { model, builtins: ['rm'] as never })).toThrow(
    /no built-in tool "rm"; there are run_/,
  )
})

test('an agent refuses a tool of the same name with the way out, and takes it without the built-in one', () => {
  const model = scripted([])
  const own = simple('run_code', () => 1)
  expect(() => new Agent('', { model, tools: [own] })).toThrow(/"run_code" is a built-in tool.*Rename yours/)
  expect(() => new Agent('', { model }).addTool(own)).toThrow(/"run_code" is a built-in tool/)
  expect(names(new Agent('', { model, tools: [own], builtins: false }))).toEqual(['run_code'])
})

test('an agent that writes and then runs in one turn always sees the file', async () => {
  for (let i = 0; i < 4; i++) {
    const content = `print(${i})\n`.padEnd(i % 2 ? 20 : 2_000_000, '#')
    const model = scripted([
      {
        toolCalls: [
          { name: 'write_workspace_file', args: { path: 'a.py', content: 'print("old")' } },
          { name: 'write_workspace_file', args: { path: './a.py', content } },
          { name: 'run_shell_command', args: { cmd: 'python3 a.py; echo made > made.txt' } },
          { name: 'read_workspace_file', args: { path: 'made.txt' } },
          { name: 'list_workspace_files', args: {} },
        ],
      },
      'Done.',
    ])
    const session = await new Agent('', { model })(Session.fromUserMessage('go').to('local', folder))
    const results = session.chunks.filter(chunk => chunk.kind === 'tool-result')
    expect(results.map(({ outcome }) => (outcome.kind === 'value' ? outcome.value : outcome))).toMatchObject([
      { created: i === 0 },
      { created: false, bytes: content.length },
      { exitCode: 0, stdout: `${i}\n` },
      'made\n',
      { entries: ['a.py', 'made.txt'] },
    ])
  }
})

test('an agent whose session has no place reads what to do about it', async () => {
  const model = scripted([{ toolCalls: [{ name: 'run_shell_command', args: { cmd: 'ls' } }] }, 'I cannot.'])
  const session = await new Agent('', { model, builtins: true })(Session.fromUserMessage('go'))
  const [result] = session.chunks.filter(chunk => chunk.kind === 'tool-result')
  expect(result?.outcome).toMatchObject({
    kind: 'error',
    error: 'threw',
    message: expect.stringContaining("session.to('local', './')"),
    detail: { code: 'placement-missing' },
  })
})

test('an agent keeps its private folder from call to call, and shares it with an agent that is its tool', async () => {
  const write = { name: 'write_workspace_file', args: { path: 'note', content: 'kept' } }
  const read = { name: 'read_workspace_file', args: { path: 'note' } }
  const helper = new Agent('', {
    model: scripted((request, n) => (n === 0 ? { toolCalls: [read] } : lastResult(request))),
  })
  const model = scripted([
    ...[{ toolCalls: [write] }, 'Written.', { toolCalls: [read] }, 'Read.'],
    ...[{ toolCalls: [{ name: 'help', args: { request: 'Read it.' } }] }, 'Helped.'],
  ])
  const agent = new Agent('', { model, tools: [helper.asTool({ name: 'help', description: 'Helps.' })] })
  let session = Session.fromUserMessage('go').to('local')
  for (const text of ['write', 'read', 'help']) session = await agent(session.user(text))
  const outcomes = session.chunks.filter(chunk => chunk.kind === 'tool-result').map(({ outcome }) => outcome)
  expect(outcomes.slice(1)).toMatchObject([{ value: 'kept' }, { value: 'kept' }])
})

test('a sandbox is opened by the first tool that asks, once for all that ask at once, and by no other', async () => {
  const idle = simple('idle', () => 'done')
  const ask = (name: string, args = {}) => ({ name, args })
  const reads = Array.from({ length: 8 }, (_, i) => ask('workspace_path_exists', { path: `${i}` }))
  const model = scripted([{ toolCalls: [ask('idle')] }, 'Idle.', { toolCalls: reads }, 'Looked.'])
  const agent = new Agent('', { model, tools: [idle] })
  opened.length = 0
  const session = await agent(Session.fromUserMessage('go').to('local', { path: folder, env: {} }))
  expect(opened).toEqual([])
  await agent(session.user('look'))
  expect(opened).toHaveLength(1)
})

function lastResult(request: { readonly messages: readonly unknown[] }): string {
  const { outcome } = request.messages.at(-1) as { outcome: { value: string } }
  return outcome.value
}
