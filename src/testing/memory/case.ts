import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../base/json.ts'
import type { FindOptions, MemoryBackend, MemoryFilter, MemoryStore, NewMemory } from '../../memory/spec.ts'
import type { ConformanceCase } from '../conformance.ts'

export interface MemoryTestOptions {
  /** What each case opens: a spec that leads to an empty store, a new one every time. No spec by default. */
  spec?(): JsonObject | Promise<JsonObject>
  /** Called after each case with what was opened, to remove its data. */
  dispose?(spec: JsonObject): void | Promise<void>
  /** Cases that this backend does not pass, by name, each with the reason. */
  readonly except?: Readonly<Record<string, string>>
}

export interface Bench {
  readonly store: MemoryStore
  /** A second, independent opening of the same memories. Closed when the case is over. */
  again(): Promise<MemoryStore>
  /** A new, empty folder of this machine. Removed when the case is over. */
  folder(): Promise<string>
}

export type MemoryCases = Readonly<Record<string, (bench: Bench) => Promise<void>>>

/** Cases by name, each on a store of its own that is closed whatever happens. */
export function casesOn(
  backend: MemoryBackend,
  options: MemoryTestOptions,
  cases: MemoryCases,
): ConformanceCase[] {
  return Object.entries(cases).map(([name, run]) => ({
    name,
    async run() {
      const ends: (() => unknown)[] = []
      try {
        const spec = await options.spec?.()
        if (spec !== undefined) ends.push(() => options.dispose?.(spec))
        const open = async () => {
          const store = await backend.open(spec)
          ends.push(() => store.close())
          return store
        }
        const folder = async () => {
          const path = await mkdtemp(join(tmpdir(), 'openrath-memory-'))
          ends.push(() => rm(path, { recursive: true, force: true }))
          return path
        }
        await run({ store: await open(), again: open, folder })
      } finally {
        for (const end of ends.toReversed()) await end()
      }
    },
  }))
}

/** Keeps one entry. */
export async function remembered(store: MemoryStore, entry: string | NewMemory): Promise<string> {
  const [kept] = await store.write([typeof entry === 'string' ? { text: entry } : entry])
  assert.ok(kept, 'nothing came back from write')
  return kept.id
}

/** The texts that a query finds, best first. */
export async function found(store: MemoryStore, query: string, options?: FindOptions): Promise<string[]> {
  return (await store.find(query, options)).hits.map(hit => hit.text)
}

/** The texts that a filter lists, in the order of the alphabet. */
export async function listed(store: MemoryStore, filter: MemoryFilter = {}): Promise<string[]> {
  return (await store.list({ ...filter, limit: 100 })).entries.map(entry => entry.text).sort()
}

/** Notes about unlike things, so that a query has something not to find. */
export const notes: readonly string[] = [
  'Ada prefers tea with lemon in the morning.',
  'The deployment of the billing service failed because the database password had expired.',
  'Our office in Lisbon moves to the third floor in March.',
  'Use four spaces for indentation in Python files.',
  'The quarterly report is due on the second Friday.',
  'Bruno plays the violin in an amateur orchestra.',
  'The staging cluster runs Kubernetes with three nodes.',
  'Never restart the payment gateway during business hours.',
]
