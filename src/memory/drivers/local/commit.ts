import { sha256 } from '../../../base/digest.ts'
import type { Session } from '../../../session/session.ts'
import { checkEntries } from '../../check.ts'
import type { CommitOptions, Committed, NewMemory } from '../../spec.ts'
import { chunkKey, type Rejections, rejectionsOf, rememberedIn, sessionScope, turnsOf } from '../../turns.ts'
import { relabel, type Writing, writeEntries } from './write.ts'

/** What a commit will write and mark, read from the session before the database is held. */
export interface CommitPlan {
  readonly entries: readonly NewMemory[]
  /** The session's lane, and entries that it names as its own: everyone sees them now. */
  readonly lane: string
  readonly adopted: readonly string[]
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
  return {
    entries: checkEntries(entries),
    lane: session.lineage.lane ?? '',
    adopted: rememberedIn(session, store),
    rejections: rejectionsOf(session),
  }
}

export function commitPlan(writing: Writing, plan: CommitPlan): Committed {
  const { fresh } = writeEntries(writing, plan.entries)
  const settled = settle(writing, plan)
  reject(writing, plan.rejections)
  const from = new Set(fresh.flatMap(entry => entry.source.chunks ?? []))
  return { written: fresh, from: [...from], settled }
}

function settle({ db, names }: Writing, { lane, adopted }: CommitPlan): number {
  const waiting = new Set<number>()
  const number = names.find('lane', lane)
  if (number !== 0) {
    for (const row of db.all('SELECT n FROM entry WHERE lane = ? AND lane <> 0', number))
      waiting.add(row.n as number)
  }
  for (const id of adopted) {
    const row = db.get('SELECT n FROM entry WHERE id = ? AND lane <> 0', id)
    if (row) waiting.add(row.n as number)
  }
  for (const n of waiting) relabel(db, n, { lane: 0 })
  return waiting.size
}

/** Marks what came from rejected chunks, sessions or lanes. It is on the record now, so everyone may find it, as what it is. */
function reject({ db, names }: Writing, { chunks, subjects }: Rejections): void {
  if (subjects.size === 0) return
  const found = new Set<number>()
  const collect = (sql: string, ...values: string[]) => {
    for (const row of db.all(sql, ...values)) if (!row.rejected) found.add(row.n as number)
  }
  for (const chunk of [...chunks, ...subjects]) {
    // A turn has its chunk in its key, alone or followed by the number of a piece.
    const key = chunkKey + chunk
    collect("SELECT n, rejected FROM entry WHERE key = ?1 OR (key > ?1 || '/' AND key < ?1 || '0')", key)
    collect('SELECT n, rejected FROM entry WHERE id IN (SELECT id FROM origin WHERE chunk = ?)', chunk)
  }
  for (const row of db.all('SELECT DISTINCT lane FROM entry WHERE lane <> 0')) {
    if (!isRejected(names.text(row.lane as number), subjects)) continue
    for (const { n } of db.all('SELECT n FROM entry WHERE lane = ? AND lane <> 0', row.lane as number))
      found.add(n as number)
  }
  for (const n of found) relabel(db, n, { lane: 0, rejected: 1 })
}

/** A lane is rejected by its whole name or by the session that began a part of it. */
function isRejected(lane: string, subjects: ReadonlySet<string>): boolean {
  const parts = lane.split('/')
  return parts.some(
    (part, i) => subjects.has(part.replace(/^[~@]/, '')) || subjects.has(parts.slice(0, i + 1).join('/')),
  )
}
