import { RathError } from '../../../base/errors.ts'
import { tokenizerVersion } from '../../words.ts'
import type { Pool, Queries } from './pool.ts'
import { divideAnew } from './write.ts'

/** The letters RATH, and the number of this lock among ours. */
const lock = 'SELECT pg_advisory_xact_lock(1380013128, 3)'

/**
 * Each step takes the schema from the version of its index to the next. A released step is never edited: a change is a new step.
 *
 * Texts compare by their bytes, so that an index does not depend on the collations of the server's operating system. A row of `place` is one
 * store of memories; whoever writes to it locks that row first, so that writers wait for each other and never meet. `word` is the index:
 * an entry's words as our own tokenizer has them, so that any script is found alike here and in the local backend.
 */
const migrations: readonly string[] = [
  `
  CREATE TABLE openrath_memory.format (product text NOT NULL, version integer NOT NULL);
  INSERT INTO openrath_memory.format VALUES ('openrath-memory', 0);
  CREATE TABLE openrath_memory.place (
    n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    entries bigint NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    tokenizer integer NOT NULL
  );
  CREATE TABLE openrath_memory.entry (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    place integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    lane text COLLATE "C" NOT NULL,
    series text COLLATE "C",
    position double precision NOT NULL,
    rejected boolean NOT NULL,
    length integer NOT NULL,
    happened double precision NOT NULL,
    written double precision NOT NULL,
    expires double precision,
    version integer NOT NULL,
    key text COLLATE "C",
    labels text[] COLLATE "C" NOT NULL,
    tags text NOT NULL,
    metadata text NOT NULL,
    source text NOT NULL,
    body text NOT NULL,
    UNIQUE (place, id)
  );
  CREATE INDEX entry_happened ON openrath_memory.entry (place, happened, n);
  CREATE INDEX entry_scope ON openrath_memory.entry (place, scope);
  CREATE UNIQUE INDEX entry_key ON openrath_memory.entry (place, scope, key) WHERE key IS NOT NULL;
  CREATE INDEX entry_series ON openrath_memory.entry (place, series, position) WHERE series IS NOT NULL;
  CREATE INDEX entry_lane ON openrath_memory.entry (place, lane) WHERE lane <> '';
  CREATE INDEX entry_expires ON openrath_memory.entry (place, expires) WHERE expires IS NOT NULL;
  CREATE INDEX entry_labels ON openrath_memory.entry USING gin (labels) WHERE labels <> '{}';
  CREATE TABLE openrath_memory.word (
    place integer NOT NULL,
    word text COLLATE "C" NOT NULL,
    entry bigint NOT NULL,
    count integer NOT NULL,
    length integer NOT NULL,
    PRIMARY KEY (place, word, entry) INCLUDE (count, length)
  );
  CREATE INDEX word_entry ON openrath_memory.word (entry);
  CREATE TABLE openrath_memory.revision (
    place integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (place, id, version)
  );
  `,
  // Turns of sessions that were forgotten, so that committing the session again does not bring them back.
  `
  CREATE TABLE openrath_memory.forgotten (
    place integer NOT NULL,
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (place, scope, key)
  );
  `,
]

/** Brings the schema up to the newest version, all steps in one transaction. Many processes may come here at once. */
export async function migrate(pool: Pool, steps: readonly string[] = migrations): Promise<void> {
  if ((await versionOf(pool, pool.url, steps)) === steps.length) return
  await pool.transaction(async queries => {
    await queries.query(lock)
    const version = await versionOf(queries, pool.url, steps)
    if (version === steps.length) return
    if (version === 0) await makeSchema(queries)
    for (const step of steps.slice(version)) await queries.query(step)
    await queries.query(`UPDATE openrath_memory.format SET version = ${steps.length}`)
  })
}

/** The number of a store, which is made when it is new. */
export async function placeNamed(pool: Pool, name: string): Promise<number> {
  const select = 'SELECT n, tokenizer FROM openrath_memory.place WHERE name = $1'
  const [known] = await pool.query<StoreNumber>(select, [name])
  if (known?.tokenizer === tokenizerVersion) return known.n
  const insert = 'INSERT INTO openrath_memory.place (name, tokenizer) VALUES ($1, $2) ON CONFLICT DO NOTHING'
  await pool.query(insert, [name, tokenizerVersion])
  const [row] = await pool.query<StoreNumber>(select, [name])
  const { n, tokenizer } = row as StoreNumber
  if (tokenizer !== tokenizerVersion) {
    await pool.transaction(queries => divideAnew({ queries, place: n, now: 0 }, tokenizerVersion))
  }
  return n
}

interface StoreNumber {
  readonly n: number
  readonly tokenizer: number
}

async function makeSchema(queries: Queries): Promise<void> {
  // Asked first, because CREATE SCHEMA IF NOT EXISTS needs a right that a prepared schema makes unnecessary.
  const [found] = await queries.query<{ there: boolean }>(
    "SELECT to_regnamespace('openrath_memory') IS NOT NULL AS there",
  )
  if (!found?.there) await queries.query('CREATE SCHEMA openrath_memory')
}

/** The version of what is there; 0 for nothing. Refuses what is not ours, too new, or on a server that cannot hold it. */
async function versionOf(queries: Queries, url: string, steps: readonly string[]): Promise<number> {
  const [found] = await queries.query<{ server: number; encoding: string; marked: boolean; things: string }>(
    `SELECT current_setting('server_version_num')::integer AS server, current_setting('server_encoding') AS encoding,
       to_regclass('openrath_memory.format') IS NOT NULL AS marked,
       (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('openrath_memory')) AS things`,
  )
  const { server, encoding, marked, things } = found as NonNullable<typeof found>
  if (server < 150000) throw unfit(url, `runs PostgreSQL ${Math.floor(server / 10000)}; it takes 15 or newer`)
  if (encoding !== 'UTF8')
    throw unfit(url, `has the encoding ${encoding}; create the database with ENCODING 'UTF8'`)
  if (!marked) {
    if (Number(things) > 0) throw foreign(url)
    return 0
  }
  const [row] = await queries.query<{ product: string | null; version: string | null }>(
    `SELECT to_jsonb(format) ->> 'product' AS product, to_jsonb(format) ->> 'version' AS version
     FROM openrath_memory.format LIMIT 1`,
  )
  if (row?.product !== 'openrath-memory') throw foreign(url)
  const version = Number(row.version)
  if (version <= steps.length) return version
  throw new RathError(
    'store-newer',
    `The memory ${url} has format ${version}, and this openrath reads up to ${steps.length}: update openrath. It was left as it is.`,
    { data: { url, version, reads: steps.length } },
  )
}

function unfit(url: string, why: string): RathError {
  return new RathError('invalid-argument', `The server of ${url} cannot hold memories: it ${why}.`, {
    data: { url },
  })
}

function foreign(url: string): RathError {
  return new RathError(
    'store-foreign',
    `The database ${url} has a schema openrath_memory that is not ours. Use another database; this one was left as it is.`,
    { data: { url } },
  )
}
