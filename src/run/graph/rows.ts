import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import type { JournalEntry, RunRow, SessionFilter, SessionRow, Store } from '../../store/spec.ts'

/** A session's row by its whole id; undefined when the store has none. */
export async function rowOf(store: Store, id: string): Promise<SessionRow | undefined> {
  const row = await store.sessions.row(id).catch(nothing('unknown-session'))
  // A name may also be a prefix or a tag.
  return row?.id === id ? row : undefined
}

export async function runOf(store: Store, id: string): Promise<RunRow | undefined> {
  return store.runs.get(id).catch(nothing('unknown-run'))
}

/** Every row that a filter lets through, page by page, the newest first. */
export async function* rowsOf(store: Store, filter: SessionFilter): AsyncGenerator<SessionRow> {
  let cursor: string | undefined
  do {
    const page = await store.sessions.list({
      ...filter,
      limit: 1000,
      ...(cursor !== undefined && { cursor }),
    })
    yield* page.rows
    cursor = page.cursor
  } while (cursor !== undefined)
}

/** The sessions that a chunk names as part of the record: those it merged, and those that were made inside it. */
export function sessionsNamed(chunk: Chunk): string[] {
  return chunk.kind === 'merge' ? chunk.branches.map(({ session }) => session) : sessionsInside(chunk)
}

/** The sessions that calls inside a tool or an effect made. */
export function sessionsInside(chunk: Chunk): string[] {
  if (chunk.kind !== 'tool-result' && chunk.kind !== 'effect') return []
  // Before format 2 the session of an agent's answer was named in extras.
  const before = chunk.extras?.session
  return chunk.sessions?.map(({ session }) => session) ?? (typeof before === 'string' ? [before] : [])
}

function nothing(code: string): (error: unknown) => undefined {
  return error => {
    if (error instanceof RathError && error.code === code) return undefined
    throw error
  }
}

/** What a dossier is made of. Nothing more is read once this is at hand. */
export interface Material {
  /** The session that everything led to; one of `sessions`. */
  readonly final: Session
  /** Parents before children, as far as they are here. */
  readonly sessions: readonly Session[]
  readonly run?: RunRow
  readonly journal?: readonly JournalEntry[]
  /** Instructions by the digest that answers name them with. */
  readonly prompts?: ReadonlyMap<Digest, string>
  /** Sessions that others came from and that were not found. */
  readonly missing?: readonly string[]
  /** Takes out the secrets that the store keeps out of itself: files are kept as they are. */
  readonly clean?: (text: string) => string
  /** There were more sessions than were looked at. */
  readonly more?: boolean
}
