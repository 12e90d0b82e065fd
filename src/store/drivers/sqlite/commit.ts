import { type Rows, type Touched, Unit } from '../../driver.ts'
import { appendOne } from './append.ts'
import type { Database } from './database.ts'
import { Extension } from './extension.ts'
import { type Sqlite, toEntryRow, toRunRow } from './rows.ts'
import type { Decided, SessionCache } from './session-cache.ts'
import { writeUnit } from './write.ts'

type Decide = (rows: Rows) => void

/**
 * One transaction. A decision on one session that is remembered is made before there is a lock, and made again in the transaction if
 * memory turns out to be wrong.
 */
export function commit(
  db: Database,
  cache: SessionCache,
  touched: Touched,
  decide: Decide,
  done: () => void,
): Promise<void> | undefined {
  const only = cache.only(touched)
  const extension = only && new Extension(only)
  if (extension) decide(extension)
  const work = () => {
    if (extension && appendOne(db, cache, extension)) return
    db.locked(() => {
      const holds = cache.check() && extension && !extension.isMore
      const decided = holds
        ? { sessions: [extension.known], unit: extension.unit }
        : load(db, cache, touched, decide)
      writeUnit(db, decided, cache)
    })
  }
  return db.attempt(work, cache.forget, done)
}

function load(db: Database, cache: SessionCache, touched: Touched, decide: Decide): Decided {
  const sessions = cache.load(touched.sessions)
  const runs = found(touched.runs, id => db.sql('SELECT * FROM run WHERE id = ?').get(id))
  const entries = found(touched.entries, ({ run, key, occurrence }) =>
    db.sql('SELECT * FROM entry WHERE run = ? AND key = ? AND occurrence = ?').get(run, key, occurrence),
  )
  const unit = new Unit({
    sessions: sessions.map(session => session.row),
    runs: runs.map(toRunRow),
    entries: entries.map(toEntryRow),
  })
  decide(unit)
  return { sessions, unit }
}

function found<K>(keys: Iterable<K>, look: (key: K) => unknown): Sqlite[] {
  const rows: Sqlite[] = []
  for (const key of keys) {
    const row = look(key)
    if (row !== undefined) rows.push(row as Sqlite)
  }
  return rows
}
