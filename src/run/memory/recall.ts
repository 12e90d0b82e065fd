import type { FindOptions, Found, Hit } from '../../memory/spec.ts'
import type { ChunkInput, MemoryHit } from '../../session/chunk.ts'
import { rootLane } from '../../session/lane.ts'
import type { Session } from '../../session/session.ts'
import {
  isShown,
  lastSaid,
  type RecallPolicy,
  type Rendered,
  renderHits,
  usualLimit,
} from './recall-policy.ts'

/** What a store found, and what it is called. */
export interface FoundIn extends Found {
  readonly store: string
}

/** What to ask a memory before an answer; undefined when there is nothing to ask, or it was asked already. */
export function recallRequest(
  session: Session,
  memory: string,
  policy: RecallPolicy,
): { readonly query: string; readonly options: FindOptions } | undefined {
  const { query: ask = lastSaid, limit = usualLimit, tokens: _, render: __, ...filter } = policy
  const query = ask(session)?.trim()
  if (!query || isAsked(session, memory, query)) return undefined
  return { query, options: { ...filter, limit, lane: filter.lane ?? session.lineage.lane ?? rootLane } }
}

/** The chunk that it leaves: what was asked and found, and exactly what the model is shown. What it was shown before it is not shown again. */
export function recallChunk(
  session: Session,
  memory: string,
  query: string,
  { store, hits, mode, fellBack }: FoundIn,
  policy: RecallPolicy,
): ChunkInput {
  const isKnown = isShown(session)
  const { text, shown } = rendered(
    hits.filter(hit => !isKnown(hit)),
    policy,
  )
  return {
    kind: 'memory',
    op: 'recall',
    store,
    query,
    hits: hits.map(hit => asRecorded(hit, shown.includes(hit))),
    ...(text !== '' && { injected: text }),
    extras: { before: 'answer', memory, mode, ...(fellBack !== undefined && { fellBack }) },
  }
}

export function failedRecall(memory: string, query: string, error: unknown): ChunkInput {
  return { kind: 'memory', op: 'recall', store: memory, query, error: messageOf(error) }
}

export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message || error.name : String(error)) || 'it failed'
}

function rendered(hits: readonly Hit[], { render, tokens }: RecallPolicy): Rendered {
  if (hits.length === 0) return { text: '', shown: [] }
  if (render === undefined) return renderHits(hits, tokens)
  const text = render(hits)
  return { text, shown: text === '' ? [] : hits }
}

function asRecorded({ id, text, score, uri, scope, standing }: Hit, shown: boolean): MemoryHit {
  return { id, text, score, extras: { uri, scope, shown, ...(standing === 'rejected' && { standing }) } }
}

/** The same question since the user last spoke: a call that goes on after a failure, or a second agent with the same memory. */
function isAsked(session: Session, memory: string, query: string): boolean {
  const last = session.chunks.findLast(
    chunk =>
      chunk.kind === 'user' ||
      (chunk.kind === 'memory' &&
        chunk.extras?.before === 'answer' &&
        chunk.extras.memory === memory &&
        chunk.query === query),
  )
  return last?.kind === 'memory'
}
