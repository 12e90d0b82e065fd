import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { importBundle } from '../../src/evidence/bundle/import.ts'
import { readBundle } from '../../src/evidence/bundle/read.ts'
import { writeBundle } from '../../src/evidence/bundle/write.ts'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { textOf } from './make.ts'

let folder: ReturnType<typeof temporaryFolder>
const home = process.env.OPENRATH_HOME
beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(() => {
  process.env.OPENRATH_HOME = home
  folder[Symbol.dispose]()
})

const writer = () =>
  new Agent('Write.', {
    name: 'writer',
    model: scripted([
      { toolCalls: [{ name: 'write_workspace_file', args: { path: 'marker.txt', content: 'x' } }] },
      'Done.',
    ]),
  })

/** Another machine has its own home; folders of the same name are other folders there. */
function machine(name: string): { home: string; runtime(store: Store): ReturnType<typeof createRuntime> } {
  const path = join(folder.path, name)
  process.env.OPENRATH_HOME = path
  return { home: path, runtime: store => createRuntime({ store }) }
}

test('a session that was imported keeps its placement as evidence, and nothing acts on it', async () => {
  const target = join(folder.path, 'target')
  mkdirSync(target)
  const spec = { path: target, passEnv: ['GITHUB_TOKEN'] }
  const theirs = await openStore('memory:')
  const sent = Session.fromUserMessage('go').to('local', spec)
  await theirs.sessions.put(sent)
  const text = await textOf(writeBundle(theirs))

  const here = machine('ours')
  const store = await openStore('memory:')
  await importBundle(await readBundle(text), store)
  const imported = await store.sessions.get(sent.id)
  expect(imported.placement).toEqual({ backend: 'local', spec })
  expect(imported.verify().ok).toBe(true)
  await using runtime = here.runtime(store)
  for (const session of [imported, imported.user('more'), imported.fork()]) {
    const error = await runtime.run(writer(), session).catch(error => error)
    expect(error).toMatchObject({ code: 'placement-missing' })
    expect(error.message).toContain('This session was imported')
  }
  expect(readdirSync(target)).toEqual([])
  // Whoever places it agrees to the place.
  await runtime.run(writer(), imported.to('local', target))
  expect(readdirSync(target)).toEqual(['marker.txt'])
})

test('what comes back to the machine where it was done goes on there', async () => {
  const here = machine('own')
  const target = join(folder.path, 'own-target')
  const store = await openStore('memory:')
  await using runtime = here.runtime(store)
  const out = await runtime.run(writer(), Session.fromUserMessage('go').to('local', target))
  const other = await openStore('memory:')
  await importBundle(await readBundle(await textOf(writeBundle(store))), other)
  await using again = here.runtime(other)
  await again.run(writer(), (await other.sessions.get(out.id)).user('more'))
  expect(existsSync(join(target, 'marker.txt'))).toBe(true)
})

test('what is kept of files is for its user alone, also where an earlier version left it open', async () => {
  const open = (path: string): string[] => {
    const found = statSync(path)
    const below = found.isDirectory() ? readdirSync(path).flatMap(name => open(join(path, name))) : []
    return (found.mode & 0o077) === 0 ? below : [path, ...below]
  }
  const here = machine('private')
  const kept = join(here.home, 'workspaces')
  const target = join(folder.path, 'private-target')
  const work = async () => {
    const store = await openStore('memory:')
    await using runtime = here.runtime(store)
    await runtime.run(writer(), Session.fromUserMessage('go').to('local', target))
  }
  await work()
  expect(open(kept)).toEqual([])
  const loosen = (path: string): void => {
    const found = statSync(path)
    chmodSync(path, found.isDirectory() ? 0o755 : 0o644)
    if (found.isDirectory()) for (const name of readdirSync(path)) loosen(join(path, name))
  }
  loosen(kept)
  await work()
  expect(open(kept).filter(path => !path.startsWith(join(kept, 'branches')))).toEqual([])
})
