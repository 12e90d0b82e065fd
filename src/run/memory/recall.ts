import type { FindOptions, Found, Hit, MemoryStore } from '../../memory/spec.ts'
import type { ChunkInput, MemoryHit } from '../../session/chunk.ts'
import { rootLane } from '../../session/lane.ts'
import type { Session } from '../../session/session.ts'
import { lastSaid, type RecallPolicy, renderHits, shownIds, usualLimit } from './recall-policy.ts'

/** What to ask a store before an answer; undefined when there is nothing to ask, or it was asked already. */
export function recallRequest(
  session: Session,
  store: string,
  policy: RecallPolicy = {},
): { readonly query: string; readonly options: FindOptions } | undefined {
  const { query: ask = lastSaid, limit = usualLimit, tokens: _, render: __, ...filter } = policy
  const query = ask(session)?.trim()
  if (!query || isAsked(session, store, query)) return undefined
  return { query, options: { ...filter, limit, lane: filter.lane ?? session.lineage.lane ?? rootLane } }
}

/** The chunk that a recall leaves: what was asked and found, and exactly what the model is shown. Entries that it was shown before are not shown again. */
export function recallChunk(
  session: Session,
  store: string,
  query: string,
  { hits, mode, fellBack }: Found,
  policy: RecallPolicy = {},
): ChunkInput {
  const known = shownIds(session, store)
  const fresh = hits.filter(hit => !known.has(hit.id))
  const injected =
    fresh.length === 0 ? '' : (policy.render ?? (list => renderHits(list, policy.tokens)))(fresh)
  const isShown = (hit: Hit) => injected !== '' && !known.has(hit.id)
  return {
    kind: 'memory',
    op: 'recall',
    store,
    query,
    hits: hits.map(hit => asRecorded(hit, isShown(hit))),
    ...(injected !== '' && { injected }),
    extras: { mode, ...(fellBack !== undefined && { fellBack }) },
  }
}

export function failedRecall(store: string, query: string, error: unknown): ChunkInput {
  return { kind: 'memory', op: 'recall', store, query, error: messageOf(error) }
}

/** Hits, best first, for a program. */
export async function recallHits(
  store: MemoryStore,
  query: string,
  options: FindOptions,
): Promise<readonly Hit[]> {
  return (await store.find(query, options)).hits
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function asRecorded({ id, text, score, uri, scope, standing }: Hit, shown: boolean): MemoryHit {
  return { id, text, score, extras: { uri, scope, shown, ...(standing === 'rejected' && { standing }) } }
}

/** The same question since the user last spoke: a call that goes on after a failure, or a second agent with the same memory. */
function isAsked(session: Session, store: string, query: string): boolean {
  const last = session.chunks.findLast(
    chunk =>
      chunk.kind === 'user' ||
      (chunk.kind === 'memory' && chunk.op === 'recall' && chunk.store === store && chunk.query === query),
  )
  return last?.kind === 'memory' && last.error === undefined
}
