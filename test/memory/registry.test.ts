import { expect, test } from 'vitest'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import { openvikingBackend } from '../../src/memory/drivers/openviking/driver.ts'
import { postgresMemory } from '../../src/memory/drivers/postgres/driver.ts'
import { MemoryRegistry } from '../../src/memory/registry.ts'
import type { MemoryBackend } from '../../src/memory/spec.ts'
import { temporaryFolder } from '../store/folder.ts'

const mine = {
  name: 'mine',
  capabilities: localMemory().capabilities,
  open: () => Promise.reject(),
} as MemoryBackend

test('a registry knows ours and the ones given, and names them all when asked for another', () => {
  const registry = new MemoryRegistry([mine])
  expect(registry.names).toEqual(['local', 'mine', 'openviking', 'postgres'])
  expect(registry.get('mine')).toBe(mine)
  expect(() => registry.get('mem0')).toThrow(
    /"mem0"; there are local, mine, openviking, postgres\. Give others to/,
  )
  expect(() => new MemoryRegistry([mine, mine])).toThrow('Two memory backends are called "mine".')
})

test('a given backend takes the place of ours of the same name', () => {
  const local = { ...mine, name: 'local' }
  expect(new MemoryRegistry([local]).get('local')).toBe(local)
})

test('what is said of a backend before it is loaded is what it says itself', () => {
  const embed = { model: 'none', embed: async () => [] }
  const says = (registry: MemoryRegistry) => registry.names.map(name => registry.get(name).capabilities)
  expect(says(new MemoryRegistry())).toEqual([
    localMemory().capabilities,
    openvikingBackend().capabilities,
    postgresMemory().capabilities,
  ])
  expect(says(new MemoryRegistry([], { embed }))).toEqual([
    localMemory({ embed }).capabilities,
    openvikingBackend().capabilities,
    postgresMemory({ embed }).capabilities,
  ])
})

test('ours are opened in the folder and the environment that were given', async () => {
  using folder = temporaryFolder()
  const registry = new MemoryRegistry([], { folder: folder.path, env: {} })
  await using store = await registry.get('local').open({ name: 'shared' })
  await store.write([{ text: 'Tea, not coffee.' }])
  await using again = await localMemory({ folder: folder.path }).open({ name: 'shared' })
  expect((await again.list()).entries.map(entry => entry.text)).toEqual(['Tea, not coffee.'])
  expect(await registry.get('local').probe?.()).toEqual({ available: true })
  for (const [name, variable] of [
    ['postgres', 'OPENRATH_MEMORY_URL'],
    ['openviking', 'OPEN_VIKING_URL'],
  ] as const) {
    expect(await registry.get(name).probe?.()).toMatchObject({ available: false })
    await expect(registry.get(name).open()).rejects.toThrow(variable)
  }
})
