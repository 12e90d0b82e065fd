import { RathError } from '../../../base/errors.ts'
import type { StoreDriver, StoredChunk } from '../../driver.ts'
import { changes, isCursor } from './changes.ts'
import { Database, type SqliteOptions } from './database.ts'
import {
  fromSession,
  numberOfChunk,
  type Sqlite,
  sessionColumns,
  sessionQuery,
  toBytes,
  toEntryRow,
  toHex,
  toRunRow,
  toSessionRow,
} from './rows.ts'
import { search } from './search.ts'
import { sweep } from './sweep.ts'
import { nextChange, Transaction } from './transaction.ts'

/** How often another process's commits are looked for while somebody follows the store. */
const pollMs = 50

/** `sqlite:PATH` — one file, many processes of one machine, on Node's own SQLite. */
export async function sqliteDriver(path: string, options: SqliteOptions = {}): Promise<StoreDriver> {
  const db = await Database.open(path, options)
  const transaction = new Transaction(db)
  const watchers = new Set<() => void>()
  const wakeAll = () => {
    if (watchers.size > 0) for (const wake of watchers) wake()
  }
  const one = (sql: string, ...values: (string | number | Uint8Array)[]) =>
    db.read(() => db.sql(sql).get(...values) as Sqlite | undefined)
  const all = (sql: string, ...values: (string | number | Uint8Array)[]) =>
    db.read(() => db.sql(sql).all(...values) as Sqlite[])

  return {
    url: `sqlite:${db.path}`,

    commit: (_, decide) => transaction.commit(decide, wakeAll),

    async sessionRow(id) {
      const row = await one(`SELECT ${sessionColumns} ${fromSession} WHERE session.id = ?`, id)
      return row && toSessionRow(row)
    },
    async sessionIds(prefix, limit) {
      // Nothing that begins with the prefix sorts behind the prefix and the last character there is.
      const sql = 'SELECT id FROM session WHERE id >= ? AND id < ? ORDER BY id LIMIT ?'
      const rows = await all(sql, prefix, `${prefix}\u{10ffff}`, limit)
      return rows.map(row => row.id as string)
    },
    async tagged(tag) {
      const row = await one(
        'SELECT session.id FROM tag JOIN session ON session.n = tag.session WHERE name = ?',
        tag,
      )
      return row?.id as string | undefined
    },
    async sessionRows(filter, limit, before) {
      const { where, values } = sessionQuery(filter, before)
      const sql = `SELECT ${sessionColumns} ${fromSession} ${where} ORDER BY session.created DESC, session.id DESC LIMIT ?`
      return (await all(sql, ...values, limit)).map(toSessionRow)
    },
    sessionChanges: { behind: cursor => changes(db, cursor), isCursor },
    runChanges: {
      async behind(cursor) {
        if (cursor === undefined) {
          const newest = await one('SELECT coalesce(max(changed), 0) AS newest FROM run')
          return { rows: [], cursor: `${newest?.newest}` }
        }
        const sql = 'SELECT * FROM run WHERE changed > ? ORDER BY changed LIMIT 1000'
        const rows = await all(sql, Number(cursor))
        return { rows: rows.map(toRunRow), cursor: `${rows.at(-1)?.changed ?? cursor}` }
      },
      isCursor: text => /^\d{1,15}$/.test(text),
    },
    watch(wake) {
      watchers.add(wake)
      let seen = versionIfReadable(db)
      const timer = setInterval(() => {
        const now = versionIfReadable(db)
        if (now !== seen) wake()
        seen = now
      }, pollMs)
      timer.unref()
      return {
        [Symbol.dispose]: () => {
          clearInterval(timer)
          watchers.delete(wake)
        },
      }
    },

    async chunkRows(head, from, limit) {
      const rows = await all(
        `WITH RECURSIVE chain (n, step) AS (
           SELECT n, 1 FROM chunk WHERE n = (${numberOfChunk}) AND position >= ?2
           UNION ALL
           SELECT chunk.previous, step + 1 FROM chain JOIN chunk ON chunk.n = chain.n
           WHERE chunk.previous IS NOT NULL AND chunk.position > ?2 AND step < ?3
         )
         SELECT chunk.id, chunk.previous, chunk.position, chunk.body FROM chain JOIN chunk ON chunk.n = chain.n
         ORDER BY chain.step`,
        head,
        from,
        limit,
      )
      const ids = rows.map(row => toHex(row.id))
      const last = rows.at(-1)?.previous
      if (typeof last === 'number') {
        const before = await one('SELECT id FROM chunk WHERE n = ?', last)
        if (before === undefined)
          throw new RathError('store-corrupt', `The store ${db.path} has lost a chunk that others follow.`)
        ids.push(toHex(before.id))
      }
      return rows.map(
        (row, i): StoredChunk => ({
          id: ids[i] as string,
          previous: ids[i + 1] ?? null,
          index: row.position as number,
          body: row.body as string,
        }),
      )
    },
    async knownChunks(ids) {
      const known = new Set<string>()
      for (const id of ids) if (await one(numberOfChunk, id)) known.add(id)
      return known
    },
    async blobs(ids) {
      const found = new Map<string, Uint8Array>()
      for (const id of ids) {
        const row = await one('SELECT bytes FROM blob WHERE id = ?', toBytes(id))
        if (row) found.set(id, row.bytes as Uint8Array)
      }
      return found
    },

    async keepBlobs(ids) {
      const now = Date.now()
      return db.write(() => {
        let kept = 0
        for (const id of ids)
          kept += Number(db.sql('UPDATE blob SET written = ? WHERE id = ?').run(now, toBytes(id)).changes)
        return kept
      })
    },

    async runRow(id) {
      const row = await one('SELECT * FROM run WHERE id = ?', id)
      return row && toRunRow(row)
    },
    async runRows(status, limit, before) {
      const sql = `SELECT * FROM run WHERE (?1 = '' OR status = ?1)
        AND (?3 = '' OR n < (SELECT n FROM run WHERE id = ?3)) ORDER BY n DESC LIMIT ?2`
      return (await all(sql, status ?? '', limit, before ?? '')).map(toRunRow)
    },
    async takeRun(owner, leaseMs, queues) {
      const now = Date.now()
      const sql = `UPDATE run SET status = 'running', owner = ?1, fence = fence + 1, lease_until = ?2 + ?3, updated = ?2,
          changed = ${nextChange}
        WHERE n = (
          SELECT n FROM run WHERE queue IN (SELECT value FROM json_each(?4)) AND not_before <= ?2
            AND (status = 'queued' OR status = 'running' AND lease_until <= ?2)
          ORDER BY priority DESC, n LIMIT 1
        ) RETURNING *`
      const row = await db.write(() => db.sql(sql).get(owner, now, leaseMs, JSON.stringify(queues)))
      if (row === undefined) return undefined
      wakeAll()
      return toRunRow(row as Sqlite)
    },
    async entryRow(run, key, occurrence) {
      const row = await one(
        'SELECT * FROM entry WHERE run = ? AND key = ? AND occurrence = ?',
        run,
        key,
        occurrence,
      )
      return row && toEntryRow(row)
    },
    async entryRows(run) {
      return (await all('SELECT * FROM entry WHERE run = ? ORDER BY n', run)).map(toEntryRow)
    },

    async unindexed(limit) {
      const rows = await all(
        "SELECT id, body FROM chunk WHERE n > (SELECT value FROM counter WHERE name = 'indexed') AND session > 0 ORDER BY n LIMIT ?",
        limit,
      )
      return rows.map(row => ({ id: toHex(row.id), body: row.body as string }))
    },
    async index(rows) {
      await db.write(() => {
        const reached = db.sql("SELECT value FROM counter WHERE name = 'indexed'").get() as { value: number }
        let last = reached.value
        for (const { id, words } of rows) {
          const found = db.sql(numberOfChunk).get(id)
          const n = (found as { n: number } | undefined)?.n
          if (n === undefined || n <= last) continue
          db.sql('INSERT INTO word (rowid, words) VALUES (?, ?)').run(n, words)
          last = n
        }
        db.sql("UPDATE counter SET value = ? WHERE name = 'indexed'").run(last)
      })
    },
    search: (words, kind, limit) => search(db, words, kind, limit),

    sweep(before, dryRun) {
      transaction.forget()
      return sweep(db, before, dryRun)
    },

    async close() {
      watchers.clear()
      db.close()
    },
  }
}

/** When it cannot be told whether another connection has committed, it counts as that: reading will say why. */
function versionIfReadable(db: Database): number {
  try {
    return db.version
  } catch {
    return Number.NaN
  }
}
