import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { isolatedBackend } from '../../src/sandbox/drivers/isolated/driver.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import type { SandboxBackend, SandboxSpec } from '../../src/sandbox/spec.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { temporaryFolder } from '../sandbox/make.ts'

/** One that says it lets nothing out, unless the spec names something. */
const local = localBackend()
const enforced = { ...local.capabilities.enforced, network: true, fileWrite: true }
const walled: SandboxBackend = {
  ...local,
  name: 'walled',
  capabilities: { ...local.capabilities, enforced },
  reachesOut: spec => typeof spec === 'object' && spec.env !== undefined,
}

/** What a resumed run would do with a command that was cut off there. */
async function ruleOn(backend: string, spec: SandboxSpec, workspaces: string): Promise<unknown> {
  await using runtime = createRuntime({ store: 'memory:', sandboxes: [walled], workspaces })
  const model = scripted([{ toolCalls: [{ name: 'run_shell_command', args: { cmd: 'true' } }] }, 'done'])
  const pending = runtime.run(new Agent('Work.', { model }), Session.fromUserMessage('go').to(backend, spec))
  await pending
  const entries = await (await runtime.store).runs.journal(pending.runId)
  const entry = entries.find(({ kind }) => kind === 'tool')
  return (entry?.request as { rule?: unknown } | undefined)?.rule
}

test('a command is an effect on the workspace only where nothing else can be reached', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'project')
  const kept = join(folder.path, 'kept')
  expect([
    await ruleOn('local', { path }, kept),
    await ruleOn('walled', { path }, kept),
    await ruleOn('walled', { path, env: { HOST: 'example.com' } }, kept),
  ]).toEqual(['external', 'workspace', 'external'])
})

test('isolated reaches out only where its spec allows hosts', () => {
  const { reachesOut } = isolatedBackend()
  const allowed = { network: { allow: ['example.com'] } }
  expect([undefined, './', { network: false }, allowed].map(spec => reachesOut?.(spec))).toEqual([
    false,
    false,
    false,
    true,
  ])
})
