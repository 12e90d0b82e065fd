import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { loadedCodeIn } from '../../src/sandbox/host/loaded-code.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { temporaryFolder } from '../sandbox/make.ts'

const installed = "export const said = 'as installed'\n"

/** A folder that this process has loaded a package from. */
async function project(folder: string): Promise<string> {
  const path = join(folder, 'project')
  mkdirSync(join(path, 'node_modules/lazy'), { recursive: true })
  writeFileSync(join(path, 'node_modules/lazy/index.mjs'), installed)
  const url = pathToFileURL(join(path, 'node_modules/lazy/index.mjs')).href
  await import(/* @vite-ignore */ url)
  // What is loaded is looked at once a second.
  while (!loadedCodeIn(path).includes('node_modules')) await sleep(20)
  return path
}

function writer(...paths: readonly string[]): Agent {
  const toolCalls = paths.map(path => ({
    name: 'write_workspace_file',
    args: { path, content: `export const said = 'rewritten'\n` },
  }))
  return new Agent('Work.', { name: 'writer', model: scripted([{ toolCalls }, 'done']) })
}

it('code that this process has loaded is rewritten in a branch, and neither by a merge nor by a checkout', async () => {
  using folder = temporaryFolder()
  const path = await project(folder.path)
  await using runtime = createRuntime({ store: 'memory:', workspaces: join(folder.path, 'kept') })
  const file = join(path, 'node_modules/lazy/index.mjs')
  const start = Session.fromUserMessage('go').to('local', path)

  const refused = await runtime.run(writer('node_modules/lazy/index.mjs', 'new.txt'), start)
  const [first] = refused.chunks.filter(chunk => chunk.kind === 'tool-result')
  expect(first?.text).toContain('is read-only here: node_modules holds code')

  const branch = await runtime.run(writer('node_modules/lazy/index.mjs', 'src/b.txt'), refused.fork())
  expect(branch.chunks.filter(chunk => chunk.kind === 'tool-result').at(-1)?.files).toMatchObject([
    { path: 'src/b.txt' },
  ])
  const merged = await refused.merge(branch)
  const done = await runtime.run(new Agent('Say.', { model: scripted(['ok']) }), merged)
  const conflicts = done.chunks.flatMap(chunk => (chunk.kind === 'merge' ? (chunk.conflicts ?? []) : []))
  expect(conflicts).toContainEqual({ path: 'node_modules', kind: 'loaded-code', settled: 'ours' })
  expect(readFileSync(file, 'utf8')).toBe(installed)
  expect(readFileSync(join(path, 'src/b.txt'), 'utf8')).toContain('rewritten')

  await expect(runtime.checkout(branch)).rejects.toMatchObject({
    code: 'path-read-only',
    message: expect.stringContaining('node_modules/lazy/index.mjs'),
  })
  await runtime.checkout(branch, join(folder.path, 'elsewhere'))
  expect(readFileSync(join(folder.path, 'elsewhere/node_modules/lazy/index.mjs'), 'utf8')).toContain(
    'rewritten',
  )
  expect(readFileSync(file, 'utf8')).toBe(installed)
})
