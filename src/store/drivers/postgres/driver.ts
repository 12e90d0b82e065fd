import { RathError } from '../../../base/errors.ts'
import type { ChangeLog, StoreDriver, StoredChunk } from '../../driver.ts'
import { readBlobs } from './blobs.ts'
import { changes, type Followed, followedRuns, followedSessions, isCursor } from './changes.ts'
import { commit } from './commit.ts'
import { Pool, type PostgresOptions } from './pool.ts'
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
import { isCurrent, migrate, serverNow } from './schema.ts'
import { indexChunks, searchWords, unindexed } from './search.ts'
import { sessionQuery } from './session-query.ts'
import { sweep } from './sweep.ts'
import { fromText, isDigest, toText, toTextOrNull } from './text.ts'
import { Watch } from './watch.ts'

/** `postgres://…` — one database, many processes of many machines, through the package `pg`. */
export async function postgresDriver(address: string, options: PostgresOptions = {}): Promise<StoreDriver> {
  const pool = await Pool.open(address, options)
  try {
    await prepare(pool, options.readOnly ?? false)
  } catch (error) {
    await pool.close()
    throw error
  }
  const watch = new Watch(pool)
  const starts = new Set<Promise<unknown>>()
  const follow = <Found extends { readonly n: number; readonly changed: string }, Row>(
    table: Followed<Found, Row>,
  ): ChangeLog<Row> => ({
    behind(cursor) {
      const found = changes(pool, table, cursor)
      if (cursor !== undefined) return found
      const start = found.finally(() => starts.delete(start))
      starts.add(start)
      return start
    },
    isCursor,
  })

  return {
    url: pool.url,

    async commit(touched, decide) {
      // Who began to follow before this was asked for must not find it in what was there before.
      if (starts.size > 0) await Promise.allSettled(starts)
      await commit(pool, touched, decide)
      watch.announce()
    },

    async sessionRow(id) {
      const sql = `SELECT ${sessionColumns} ${fromSession} WHERE session.id = $1`
      return (await pool.query<SessionRecord>(sql, [toText(id)])).map(toSessionRow)[0]
    },
    async sessionIds(prefix, limit) {
      // Nothing that begins with the prefix sorts behind the prefix and the last character there is.
      const rows = await pool.query<{ id: string }>(
        'SELECT id FROM openrath.session WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3',
        [toText(prefix), `${toText(prefix)}\u{10ffff}`, limit],
      )
      return rows.map(row => fromText(row.id))
    },
    async tagged(tag) {
      const rows = await pool.query<{ id: string }>(
        'SELECT session.id FROM openrath.tag JOIN openrath.session ON session.n = tag.session WHERE name = $1',
        [toText(tag)],
      )
      return rows.map(row => fromText(row.id))[0]
    },
    async sessionRows(filter, limit, before) {
      const { where, values } = sessionQuery(filter, before)
      const rows = await pool.query<SessionRecord>(
        `SELECT ${sessionColumns} ${fromSession} ${where}
         ORDER BY session.created DESC, session.id DESC LIMIT $${values.length + 1}`,
        [...values, limit],
      )
      return rows.map(toSessionRow)
    },
    sessionChanges: follow(followedSessions),
    runChanges: follow(followedRuns),
    watch: wake => watch.add(wake),

    chunkRows: (head, from, limit) => chunkRows(pool, head, from, limit),
    async knownChunks(ids) {
      const rows = await pool.query<{ id: string }>(
        `SELECT encode(id, 'hex') AS id FROM openrath.chunk
         WHERE id IN (SELECT decode(given, 'hex') FROM unnest($1::text[]) AS given)`,
        [ids.filter(isDigest)],
      )
      return new Set(rows.map(row => row.id))
    },
    blobs: ids => readBlobs(pool, ids.filter(isDigest)),
    async keepBlobs(ids) {
      const rows = await pool.query(
        `UPDATE openrath.blob SET written = ${serverNow}
         WHERE id IN (SELECT decode(given, 'hex') FROM unnest($1::text[]) AS given) RETURNING 1`,
        [ids.filter(isDigest)],
      )
      return rows.length
    },

    async runRow(id) {
      const rows = await pool.query<RunColumns>(`SELECT ${runColumns} FROM openrath.run WHERE id = $1`, [
        toText(id),
      ])
      return rows.map(toRunRow)[0]
    },
    async runRows(status, limit, before) {
      const rows = await pool.query<RunColumns>(
        `SELECT ${runColumns} FROM openrath.run WHERE ($1::text IS NULL OR status = $1)
           AND ($3::text IS NULL OR n < (SELECT n FROM openrath.run WHERE id = $3)) ORDER BY n DESC LIMIT $2`,
        [status ?? null, limit, toTextOrNull(before)],
      )
      return rows.map(toRunRow)
    },
    async takeRun(owner, leaseMs, queues) {
      const [row] = await pool.query<RunColumns>(
        `UPDATE openrath.run SET status = 'running', owner = $1, fence = fence + 1, lease_until = ${serverNow} + $2::bigint,
           updated = ${serverNow}, changed = pg_current_xact_id()
         WHERE n = (
           SELECT n FROM openrath.run WHERE queue = ANY ($3) AND not_before <= ${serverNow}
             AND (status = 'queued' OR status = 'running' AND lease_until <= ${serverNow})
           ORDER BY priority DESC, n LIMIT 1 FOR UPDATE SKIP LOCKED
         ) RETURNING ${runColumns}`,
        [toText(owner), leaseMs, queues.map(toText)],
      )
      if (row === undefined) return undefined
      watch.announce()
      return toRunRow(row)
    },
    async entryRow(run, key, occurrence) {
      if (!Number.isSafeInteger(occurrence)) return undefined
      const rows = await pool.query<EntryRecord>(
        `SELECT ${entryColumns} FROM openrath.entry WHERE run = $1 AND key = $2 AND occurrence = $3`,
        [toText(run), toText(key), occurrence],
      )
      return rows.map(toEntryRow)[0]
    },
    async entryRows(run) {
      const sql = `SELECT ${entryColumns} FROM openrath.entry WHERE run = $1 ORDER BY n`
      return (await pool.query<EntryRecord>(sql, [toText(run)])).map(toEntryRow)
    },

    unindexed: limit => unindexed(pool, limit),
    index: words => indexChunks(pool, words),
    search: (words, kind, limit) => searchWords(pool, words, kind, limit),
    sweep: (before, dryRun) => sweep(pool, before, dryRun),

    async close() {
      await watch.close()
      await pool.close()
    },
  }
}

/** Makes the schema, or brings it forward, unless it is current already. */
async function prepare(pool: Pool, readOnly: boolean): Promise<void> {
  if (await pool.once(connection => isCurrent(connection, pool.url))) return
  if (readOnly) {
    throw new RathError(
      'store-read-only',
      `The store ${pool.url} has not been made yet, or has an older format: open it once without readOnly.`,
      { data: { url: pool.url } },
    )
  }
  await pool.transaction(connection => migrate(connection, pool.url))
}

/** Follows a chain one chunk further than asked for, because the last chunk's predecessor is known here by its number alone. */
async function chunkRows(pool: Pool, head: string, from: number, limit: number): Promise<StoredChunk[]> {
  if (!isDigest(head)) return []
  // Subqueries and not joins: one lookup a chunk, whatever the server believes about the size of the table.
  const rows = await pool.query<{ id: string; previous: number | null; index: number; body: string }>(
    `WITH RECURSIVE chain (n, id, previous, position, step) AS (
       SELECT n, id, previous, position, 1::bigint FROM openrath.chunk
       WHERE id = decode($1, 'hex') AND position >= $2::bigint
       UNION ALL
       SELECT before.n, before.id, before.previous, before.position, chain.step + 1
       FROM chain CROSS JOIN LATERAL (
         SELECT n, id, previous, position FROM openrath.chunk WHERE chunk.n = chain.previous LIMIT 1
       ) AS before
       WHERE chain.position >= $2::bigint AND chain.step <= $3::bigint
     )
     SELECT encode(id, 'hex') AS id, previous, position AS index, CASE WHEN position >= $2::bigint AND step <= $3::bigint
       THEN (SELECT body FROM openrath.chunk WHERE chunk.n = chain.n) ELSE '' END AS body
     FROM chain ORDER BY step`,
    [head, from, limit],
  )
  const wanted = rows.filter((row, i) => row.index >= from && i < limit)
  return wanted.map(({ id, index, body, previous }, i) => {
    const before = rows[i + 1]
    if (previous !== null && before === undefined) {
      throw new RathError('store-corrupt', `The store ${pool.url} has lost a chunk that others follow.`)
    }
    return { id, previous: before?.id ?? null, index, body }
  })
}
