import assert from 'node:assert/strict'
import type { ChunkInput } from '../../session/chunk.ts'
import { Session } from '../../session/session.ts'
import type { Store, StoreOptions } from '../../store/spec.ts'
import type { ConformanceCase } from '../conformance.ts'
import { type CaseStore, withRunMethods } from './run-methods.ts'

/** An empty store of its own for one case. */
export interface StoreUnderTest {
  readonly store: Store
  /** A second, independent connection to the same data; absent where there can be none. */
  again?(options?: StoreOptions): Promise<Store>
  /** Closes the store and removes its data. */
  dispose(): Promise<void>
}

export type OpenStore = (options: StoreOptions) => Promise<StoreUnderTest>

export interface Bench {
  readonly store: CaseStore
  /** Another connection; the same one where there can be no other. Closed when the case is over. */
  other(options?: StoreOptions): Promise<CaseStore>
  readonly shared: boolean
}

/** Cases by name, each on a store of its own that is opened with the options, and disposed of whatever happens. */
export function casesOn(
  open: OpenStore,
  cases: Readonly<Record<string, (bench: Bench) => Promise<void>>>,
  options: StoreOptions = {},
): ConformanceCase[] {
  return Object.entries(cases).map(([name, run]) => ({
    name,
    async run() {
      const quiet = { secrets: {}, ...options }
      const under = await open(quiet)
      const store = withRunMethods(under.store)
      const others: Store[] = []
      const other = async (more: StoreOptions = {}) => {
        if (under.again === undefined) return store
        const another = await under.again({ ...quiet, ...more })
        others.push(another)
        return withRunMethods(another)
      }
      try {
        await run({ store, other, shared: under.again !== undefined })
      } finally {
        for (const another of others) await another.close()
        await under.dispose()
      }
    },
  }))
}

export const user = (text: string): ChunkInput => ({ kind: 'user', text, at: 1000 })

export const says = (text: string, by?: string): ChunkInput => ({
  kind: 'assistant',
  text,
  at: 1000,
  ...(by !== undefined && { by }),
})

/** A session of so many chunks, different from every other. */
export function talk(chunks: number, about = 'talk'): Session {
  let session = Session.create('empty')
  for (let i = 0; i < chunks; i++) session = session.append(user(`${about} ${session.id} ${i}`))
  return session
}

/** The texts of a session's chunks. */
export function texts(session: Session): string[] {
  return session.chunks.map(chunk => chunk.text)
}

/** The session comes back with the same chunks, digests and lineage. */
export async function assertKept(store: Store, session: Session): Promise<void> {
  const back = await store.sessions.get(session.id)
  assertSame(back.toJSONL(), session.toJSONL())
  assert.equal(back.head, session.head)
  assert.equal(back.state, session.state)
  assert.deepEqual(back.verify(), { ok: true, checked: session.length })
}

/** Like `assert.equal`, for texts too long to be shown whole. */
function assertSame(text: string, expected: string): void {
  if (text === expected) return
  let at = 0
  while (text[at] === expected[at]) at++
  const around = (whole: string) => JSON.stringify(whole.slice(Math.max(0, at - 40), at + 40))
  assert.fail(`differs at character ${at}: ${around(text)} instead of ${around(expected)}`)
}
