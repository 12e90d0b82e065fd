import { sha256 } from '../base/digest.ts'
import type { Session } from '../session/session.ts'
import { checkEntries } from './check.ts'
import type { CommitOptions, NewMemory } from './spec.ts'
import { type Rejections, rejectionsOf, rememberedIn, sessionScope, turnsOf } from './turns.ts'

/** What a commit will write and mark, read from the session before the store is held. */
export interface CommitPlan {
  readonly entries: readonly NewMemory[]
  /** The session's lane, and entries that it names as its own: everyone sees them now. */
  readonly lane: string
  readonly adopted: readonly string[]
  /** Entries that it names and that a rejected part of it wrote. */
  readonly rejected: readonly string[]
  /** Entries that its record says it forgot. */
  readonly forgotten: readonly string[]
  readonly rejections: Rejections
}

export function planCommit(session: Session, options: CommitOptions, store: string): CommitPlan {
  const scope = options.scope ?? sessionScope(session)
  const given = options.entries?.map(entry => ({
    key: `said/${sha256(entry.text).slice(0, 32)}`,
    ...entry,
    source: { session: session.id, ...entry.source },
  }))
  const entries = (given ?? turnsOf(session)).map(entry => ({ scope, ...entry }))
  const rejections = rejectionsOf(session)
  return {
    entries: checkEntries(entries),
    lane: session.lineage.lane ?? '',
    ...rememberedIn(session, store, rejections),
    rejections,
  }
}

/** A lane is rejected by its whole name or by the session that began a part of it. */
export function isRejectedLane(lane: string, subjects: ReadonlySet<string>): boolean {
  const parts = lane.split('/')
  return parts.some(
    (part, i) => subjects.has(part.replace(/^[~@]/, '')) || subjects.has(parts.slice(0, i + 1).join('/')),
  )
}
