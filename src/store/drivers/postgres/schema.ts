import { RathError } from '../../../base/errors.ts'
import type { Connection } from './connection.ts'

/** First half of our advisory locks' keys: the letters RATH. */
const family = 0x52415448
const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
const beginMigration = `${begin}; SELECT pg_advisory_xact_lock(${family}, 1)`
/** For whoever writes chunks, so that a sweep, which wants them alone, never removes what is being linked to. */
export const beginShared = `${begin}; SELECT pg_advisory_xact_lock_shared(${family}, 2)`
export const beginAlone = `${begin}; SELECT pg_advisory_xact_lock(${family}, 2)`

/** Milliseconds since the epoch by the server's clock. */
export const serverNow = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/**
 * Each step takes the schema from the version of its index to the next. A released step is never edited: a change is a
 * new step. Chunks and sessions refer to each other by small numbers; digests and ids are for the outside. Texts compare
 * by their bytes, so that an index does not depend on the collations of the server's operating system.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE openrath.format (product text NOT NULL, version integer NOT NULL);
  INSERT INTO openrath.format VALUES ('openrath', 0);
  CREATE SEQUENCE openrath.number_block;
  CREATE TABLE openrath.chunk (
    n bigint PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    previous bigint,
    position integer NOT NULL,
    session bigint NOT NULL,
    written bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL
  );
  CREATE TABLE openrath.session (
    n bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    head bigint,
    length integer NOT NULL,
    branch text COLLATE "C" NOT NULL,
    lineage text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    made_by text COLLATE "C",
    label text COLLATE "C",
    created bigint NOT NULL,
    updated bigint NOT NULL,
    changed xid8 NOT NULL DEFAULT pg_current_xact_id()
  );
  CREATE INDEX session_created ON openrath.session (created, id);
  CREATE INDEX session_changed ON openrath.session (changed, n);
  CREATE TABLE openrath.parent (
    parent text COLLATE "C" NOT NULL,
    child bigint NOT NULL,
    PRIMARY KEY (parent, child)
  );
  CREATE TABLE openrath.tag (name text COLLATE "C" PRIMARY KEY, session bigint NOT NULL);
  CREATE INDEX tag_session ON openrath.tag (session);
  CREATE TABLE openrath.blob (id bytea PRIMARY KEY, written bigint NOT NULL, bytes bytea NOT NULL);
  CREATE TABLE openrath.chunk_blob (chunk bigint NOT NULL, blob bytea NOT NULL, PRIMARY KEY (chunk, blob));
  CREATE TABLE openrath.run (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    status text COLLATE "C" NOT NULL,
    owner text COLLATE "C",
    fence bigint NOT NULL,
    lease_until double precision NOT NULL,
    input text COLLATE "C",
    output text COLLATE "C",
    data text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL
  );
  CREATE TABLE openrath.entry (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    occurrence bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    outcome text COLLATE "C",
    intended bigint NOT NULL,
    concluded bigint,
    blobs text[] COLLATE "C" NOT NULL,
    UNIQUE (run, key, occurrence)
  );
  CREATE TABLE openrath.unindexed (first bigint PRIMARY KEY, last bigint NOT NULL);
  CREATE TABLE openrath.word (
    chunk bigint PRIMARY KEY,
    size integer NOT NULL,
    words text[] COLLATE "C" NOT NULL
  );
  CREATE INDEX word_words ON openrath.word USING gin (words);
  `,
  // Chunks behind a session's newest in one trip, if the session is what the caller believes. Their numbers follow each other.
  `
  CREATE FUNCTION openrath.extend(
    session_n bigint, known_head bigint, known_length integer, known_tags text[], moved bigint, now bigint,
    first_n bigint, ids text[], kinds text[], bodies text[], queued_first bigint
  ) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    last_n bigint := first_n + cardinality(ids) - 1;
  BEGIN
    PERFORM pg_advisory_xact_lock_shared(${family}, 2);
    UPDATE openrath.session SET head = last_n, length = known_length + cardinality(ids), updated = moved,
      changed = pg_current_xact_id()
    WHERE n = session_n AND head IS NOT DISTINCT FROM known_head AND length = known_length
      AND (SELECT array_agg(name ORDER BY name) FROM openrath.tag WHERE tag.session = session_n) IS NOT DISTINCT FROM known_tags;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'session % has changed', session_n USING ERRCODE = 'serialization_failure';
    END IF;
    FOR i IN 1 .. cardinality(ids) LOOP
      INSERT INTO openrath.chunk (n, id, previous, position, session, written, kind, body)
      VALUES (first_n + i - 1, decode(ids[i], 'hex'), CASE i WHEN 1 THEN known_head ELSE first_n + i - 2 END,
        known_length + i - 1, session_n, now, kinds[i], bodies[i])
      ON CONFLICT (id) DO NOTHING;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'chunk % is stored', ids[i] USING ERRCODE = 'serialization_failure';
      END IF;
    END LOOP;
    UPDATE openrath.unindexed SET last = last_n WHERE first = queued_first AND last = first_n - 1;
    IF NOT FOUND THEN
      INSERT INTO openrath.unindexed (first, last) VALUES (first_n, last_n);
    END IF;
  END $$;
  `,
  // Runs wait in queues, can be asked to stop, and are followed as sessions are. A session is extended by the same transaction as any other.
  `
  DROP FUNCTION openrath.extend;
  ALTER TABLE openrath.run ADD COLUMN queue text COLLATE "C", ADD COLUMN priority bigint NOT NULL DEFAULT 0,
    ADD COLUMN not_before double precision NOT NULL DEFAULT 0, ADD COLUMN cancel text COLLATE "C",
    ADD COLUMN changed xid8 NOT NULL DEFAULT pg_current_xact_id();
  CREATE INDEX run_changed ON openrath.run (changed, n);
  CREATE INDEX run_queue ON openrath.run (queue, priority DESC, n) WHERE queue IS NOT NULL AND status IN ('queued', 'running');
  `,
]

/** What the server says about itself and about what lies in our schema. */
interface Found {
  readonly server: number
  readonly encoding: string
  readonly schema: boolean
  readonly marked: boolean
  readonly things: number
}

/** True when the schema is there and of this version; false when it has to be made or brought forward. */
export async function isCurrent(
  connection: Connection,
  url: string,
  steps: readonly string[] = migrations,
): Promise<boolean> {
  return (await versionOf(connection, url, steps)) === steps.length
}

/** Brings the schema up to the newest version, all steps in one transaction. */
export async function migrate(
  connection: Connection,
  url: string,
  steps: readonly string[] = migrations,
): Promise<void> {
  // Many processes may open an empty database at once: one makes the schema, the others wait here and find it made.
  await connection.query(beginMigration)
  const version = await versionOf(connection, url, steps)
  if (version === steps.length) return
  if (version === 0) {
    // Asked first, because CREATE SCHEMA IF NOT EXISTS needs a right that a prepared schema makes unnecessary.
    const { schema } = await look(connection)
    if (!schema) await connection.query('CREATE SCHEMA openrath')
  }
  for (const step of steps.slice(version)) await connection.query(step)
  await connection.query(`UPDATE openrath.format SET version = ${steps.length}`)
}

/** The version of what is there; 0 for nothing. Refuses what is not ours, too new, or on a server that cannot hold it. */
async function versionOf(connection: Connection, url: string, steps: readonly string[]): Promise<number> {
  const { server, encoding, marked, things } = await look(connection)
  if (server < 150000) throw unfit(url, `runs PostgreSQL ${Math.floor(server / 10000)}; it takes 15 or newer`)
  if (encoding !== 'UTF8')
    throw unfit(url, `has the encoding ${encoding}; create the database with ENCODING 'UTF8'`)
  if (!marked) {
    if (things > 0) throw foreign(url)
    return 0
  }
  // By way of JSON, because another program's table may lack these columns.
  const [row] = await connection.query<{ product: string | null; version: string | null }>(
    `SELECT to_jsonb(format) ->> 'product' AS product, to_jsonb(format) ->> 'version' AS version
     FROM openrath.format LIMIT 1`,
  )
  if (row?.product !== 'openrath') throw foreign(url)
  const version = Number(row.version)
  if (version > steps.length) throw newer(url, version, steps.length)
  return version
}

async function look(connection: Connection): Promise<Found> {
  const [found] = await connection.query<Found>(
    `SELECT current_setting('server_version_num')::integer AS server, current_setting('server_encoding') AS encoding,
       to_regnamespace('openrath') IS NOT NULL AS schema, to_regclass('openrath.format') IS NOT NULL AS marked,
       (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('openrath')) AS things`,
  )
  return found as Found
}

function unfit(url: string, why: string): RathError {
  return new RathError('invalid-argument', `The server of ${url} cannot hold a store: it ${why}.`, {
    data: { url },
  })
}

function foreign(url: string): RathError {
  return new RathError(
    'store-foreign',
    `The database ${url} has a schema openrath that is not a store of ours. Use another database; this one was left as it is.`,
    { data: { url } },
  )
}

function newer(url: string, version: number, reads: number): RathError {
  return new RathError(
    'store-newer',
    `The store ${url} has format ${version}, and this openrath reads up to ${reads}: update openrath. The store was left as it is.`,
    { data: { url, version, reads } },
  )
}
