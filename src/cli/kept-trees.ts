import type { Digest } from '../base/digest.ts'
import type { Json } from '../base/json.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import type { ChunkRecord, Store } from '../store/spec.ts'

/**
 * Whatever looks like a digest in anything that a store speaks of, wherever it stands: chunks of every kept session, and journals of every
 * run; and the ids of the chunks that placed sessions. To keep too much is safe.
 */
export async function digestsNamedIn(store: Store): Promise<Set<Digest>> {
  const digests = new Set<Digest>()
  await eachChunk(store, ({ id, chunk }) => {
    if (chunk.kind === 'placement') digests.add(id)
    collect(chunk as unknown as Json, digests)
  })
  for (const { id, data } of await allRuns(store)) {
    collect(data, digests)
    for (const { request, outcome } of await store.runs.journal(id)) {
      collect(request, digests)
      if (outcome !== undefined) collect(outcome, digests)
    }
  }
  return digests
}

/** Those of trees that are kept. */
export function treesAmong(digests: Iterable<Digest>, objects: ObjectStore): Set<Digest> {
  return new Set([...digests].filter(id => objects.has(id) && objects.readAny(id).kind === 'tree'))
}

/** Every chunk once: a session whose newest chunk was seen in another's history has nothing of its own. */
async function eachChunk(store: Store, visit: (record: ChunkRecord) => void): Promise<void> {
  const seen = new Set<Digest>()
  let cursor: string | undefined
  do {
    const page = await store.sessions.list({ limit: 1000, ...(cursor && { cursor }) })
    for (const { id, head } of page.rows) {
      if (head === null || seen.has(head)) continue
      for (const record of await store.sessions.chunks(id)) {
        if (seen.has(record.id)) continue
        seen.add(record.id)
        visit(record)
      }
    }
    cursor = page.cursor
  } while (cursor)
}

const mostRuns = 1000

async function allRuns(store: Store) {
  const runs = await store.runs.list({ limit: mostRuns })
  if (runs.length < mostRuns) return runs
  throw new Error(
    `${store.url} has ${mostRuns} runs or more, and not all of them can be looked through: kept files stay.`,
  )
}

function collect(value: Json, into: Set<string>): void {
  if (typeof value === 'string') {
    if (/^[0-9a-f]{64}$/.test(value)) into.add(value)
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) collect(part as Json, into)
  }
}
