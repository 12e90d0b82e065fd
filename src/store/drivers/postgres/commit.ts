import type { Touched } from '../../driver.ts'
import type { Statement } from './connection.ts'
import type { Pool } from './pool.ts'
import {
  type EntryRecord,
  entryColumns,
  fromSession,
  type RunColumns,
  runColumns,
  type SessionRecord,
  sessionColumns,
  toEntryRow,
  toRunRow,
  toSessionRow,
} from './rows.ts'
import { beginShared, serverNow } from './schema.ts'
import { toText } from './text.ts'
import { Unit } from './unit.ts'
import { writeUnit } from './write.ts'

/**
 * One transaction: rows are locked and loaded, a decision is made on them, its outcome is written. Everybody locks in the same order,
 * so nobody waits in a circle. Rows that are not there cannot be locked: who finds on writing that another was faster starts over.
 */
export async function commit(pool: Pool, touched: Touched, decide: (unit: Unit) => void): Promise<void> {
  const reads = readsOf(touched)
  await pool.transaction(async (connection, attempt) => {
    const [, locked, found, runs, entries, clock] = (await connection.queries([
      { text: beginShared },
      ...reads,
    ])) as [unknown, { n: number }[], SessionRecord[], RunColumns[], EntryRecord[], { now: number }[]]
    // What came into being between the two statements is not locked, and for this attempt not there.
    const held = new Set(locked.map(row => row.n))
    const sessions = found.filter(row => held.has(row.n))
    const unit = new Unit({
      sessions: sessions.map(toSessionRow),
      runs: runs.map(toRunRow),
      entries: entries.map(toEntryRow),
      ...(clock[0] && { now: clock[0].now }),
    })
    decide(unit)
    await writeUnit(connection, unit, { sessions, runs, entries }, attempt > 0)
  })
}

/** Sessions are locked first and read by a second statement: one that waits for a lock sees the tables it joins as they were before. */
function readsOf(touched: Touched): (Statement | undefined)[] {
  const sessions = [...new Set(touched.sessions)].map(toText)
  const runs = [...new Set(touched.runs)].map(toText)
  const entries = [...touched.entries]
  return [
    sessions.length > 0
      ? {
          text: 'SELECT n FROM openrath.session WHERE id = ANY ($1) ORDER BY id FOR UPDATE',
          values: [sessions],
        }
      : undefined,
    sessions.length > 0
      ? {
          text: `SELECT ${sessionColumns} ${fromSession} WHERE session.id = ANY ($1)`,
          values: [sessions],
        }
      : undefined,
    runs.length > 0
      ? {
          text: `SELECT ${runColumns} FROM openrath.run WHERE id = ANY ($1) ORDER BY id FOR UPDATE`,
          values: [runs],
        }
      : undefined,
    entries.length > 0
      ? {
          text: `SELECT ${entryColumns} FROM openrath.entry
        JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS given (run, key, occurrence)) AS given
        USING (run, key, occurrence) ORDER BY run, key, occurrence FOR UPDATE OF entry`,
          values: [
            entries.map(name => toText(name.run)),
            entries.map(name => toText(name.key)),
            entries.map(name => name.occurrence),
          ],
        }
      : undefined,
    // Leases are by the server's clock, which all machines share; asked for when the rows are locked.
    runs.length > 0 ? { text: `SELECT ${serverNow} AS now` } : undefined,
  ]
}
