import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import type { MemoryBackend, MemoryStore } from '../../src/memory/spec.ts'
import { testMemory } from '../../src/testing/memory.ts'

const fresh = {
  spec: async () => ({ path: await mkdtemp(join(tmpdir(), 'openrath-memory-')) }),
  dispose: ({ path }: { path?: unknown }) => rm(path as string, { recursive: true, force: true }),
}

/** The local backend with methods of its stores replaced. */
function broken(change: (store: MemoryStore) => Partial<MemoryStore>): MemoryBackend {
  const local = localMemory({ durability: 'normal' })
  return {
    ...local,
    async open(spec) {
      const store = await local.open(spec)
      const replaced = change(store)
      return new Proxy(store, {
        get(target, name) {
          const value = Reflect.get(name in replaced ? replaced : target, name)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    },
  }
}

function runCase(name: string, backend: MemoryBackend): Promise<void> {
  const found = testMemory(backend, fresh).find(one => one.name === name)
  if (!found) throw new Error(`There is no case ${name}`)
  return found.run()
}

/** Ways to be wrong, and a case that has to notice each. */
const wrongs: Record<string, [case_: string, change: (store: MemoryStore) => Partial<MemoryStore>]> = {
  'finds something whatever was asked': [
    'nothing that fits is an empty list',
    store => ({
      find: async () => ({
        hits: (await store.list()).entries.map(entry => ({ ...entry, score: 0.1 })),
        mode: 'words',
      }),
    }),
  ],
  'pays no heed to the floor': [
    'a floor leaves out what scores below it',
    store => ({ find: (query, options) => store.find(query, { ...options, floor: 0 }) }),
  ],
  'writes a key again': [
    'a key is written once in its scope, and comes back as it stands',
    store => ({
      write: (entries, options) =>
        store.write(
          entries.map(({ key: _, ...rest }) => rest),
          options,
        ),
    }),
  ],
  'writes the good ones of a bad call': [
    'a write with one entry that cannot be kept keeps none',
    store => ({
      write: async (entries, options) => {
        const kept = []
        for (const entry of entries) kept.push(...(await store.write([entry], options)))
        return kept
      },
    }),
  ],
  'loses earlier texts': [
    'a history holds every text, the oldest first, and when it was replaced',
    store => ({
      history: async ref => [(await store.history(ref)).at(-1)].filter(entry => entry !== undefined),
    }),
  ],
  'shows what waits on a lane': [
    'an entry on a lane is seen from it and from what was forked off it, and from nowhere else',
    store => ({
      write: (entries, options) =>
        store.write(
          entries.map(({ lane: _, ...rest }) => rest),
          options,
        ),
    }),
  ],
  'never ends an entry': [
    'an entry that has ended is seen no more',
    store => ({
      write: (entries, options) =>
        store.write(
          entries.map(({ expires: _, ...rest }) => rest),
          options,
        ),
    }),
  ],
  'commits the same turns again': [
    'a session committed again writes nothing, one that has grown only what is new',
    store => ({
      commit: async session => ({
        written: await store.write(session.chunks.map(chunk => ({ text: chunk.text }))),
        from: [],
        settled: 0,
      }),
    }),
  ],
  'reads any file': [
    'no file outside of its root is taken in, whatever leads to it',
    store => ({
      ingest: resource =>
        store.ingest(
          'file' in resource ? { name: resource.file || 'x', text: `read ${resource.file}` } : resource,
        ),
    }),
  ],
  'goes on after close': [
    'after close everything is refused, and closing again is nothing',
    () => ({ close: async () => {} }),
  ],
}

for (const [wrong, [name, change]] of Object.entries(wrongs)) {
  test(`the suite notices a backend that ${wrong}`, async () => {
    await expect(runCase(name, broken(change))).rejects.toThrow()
    await runCase(
      name,
      broken(() => ({})),
    )
  })
}

test('a case that is to be left out has to exist', () => {
  expect(() => testMemory(localMemory(), { except: { 'no such case': 'a slip of the pen' } })).toThrow(
    'no such case',
  )
  const all = testMemory(localMemory())
  const name = all[0]?.name as string
  expect(testMemory(localMemory(), { except: { [name]: 'shown' } })).toHaveLength(all.length - 1)
  expect(new Set(all.map(one => one.name)).size).toBe(all.length)
})
