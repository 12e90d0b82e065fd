import type { DatabaseSync } from 'node:sqlite'
import { checkFileFormat, checkNewest, type FileFormat, migrateFile } from '../../../base/sqlite/format.ts'

/** Marks a database file as a store of ours: the letters RATH. */
export const applicationId = 0x52415448

/**
 * Each step takes the schema from the version of its index to the next. A released step is never edited: a change is a
 * new step. Chunks and sessions refer to each other by small numbers; digests and ids are for the outside. The number of a
 * deleted session is not given out again, because chunks that others share still name it.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE chunk (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    previous INTEGER,
    position INTEGER NOT NULL,
    session INTEGER NOT NULL,
    written INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE TABLE session (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    head INTEGER,
    length INTEGER NOT NULL,
    branch TEXT NOT NULL,
    lineage TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    change INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX session_created ON session (created, id);
  CREATE INDEX session_change ON session (change);
  CREATE TABLE parent (
    parent TEXT NOT NULL,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE tag (name TEXT PRIMARY KEY, session INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX tag_session ON tag (session);
  CREATE TABLE blob (id BLOB PRIMARY KEY, written INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
  CREATE TABLE chunk_blob (
    chunk INTEGER NOT NULL,
    blob BLOB NOT NULL,
    PRIMARY KEY (chunk, blob)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE run (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    owner TEXT,
    fence INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    input TEXT,
    output TEXT,
    data TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE entry (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    key TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    kind TEXT NOT NULL,
    request TEXT NOT NULL,
    outcome TEXT,
    intended INTEGER NOT NULL,
    concluded INTEGER,
    blobs TEXT NOT NULL,
    UNIQUE (run, key, occurrence)
  ) STRICT;
  CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO counter VALUES ('change', 0), ('indexed', 0);
  CREATE VIRTUAL TABLE word USING fts5 (
    words, content='', contentless_delete=1, detail=column, tokenize='ascii'
  );
  `,
  // Chunks are the log of changes, so that an append has one index less to write.
  `
  DROP INDEX session_change;
  ALTER TABLE session RENAME COLUMN change TO version;
  DELETE FROM counter WHERE name = 'change';
  CREATE TABLE touched (n INTEGER PRIMARY KEY, session INTEGER NOT NULL, after INTEGER NOT NULL) STRICT;
  `,
  // An append is one row: chunks behind `folded` are not in `digest` yet, and move their session's head by being there; see tail.ts. When
  // a chunk was written is `at` from here on, so that the gc of a process that still has format 2 open fails, and collects no tail.
  `
  CREATE TABLE recorded (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    previous INTEGER,
    position INTEGER NOT NULL,
    session INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  INSERT INTO recorded SELECT n, id, previous, position, session, written, body FROM chunk;
  CREATE TABLE digest (id BLOB PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO digest SELECT id, n FROM chunk WHERE session > 0 ORDER BY id;
  INSERT INTO counter SELECT 'folded', coalesce(max(n), 0) FROM chunk;
  DROP TABLE chunk;
  ALTER TABLE recorded RENAME TO chunk;
  ALTER TABLE session DROP COLUMN version;
  `,
  // Runs wait in queues, can be asked to stop, and are followed: `changed` numbers their changes. The tail is folded for good: digests are
  // an index of `chunk`, and the row of a session names its newest chunk. Two rows that are one chunk become one, and the other tells of a
  // change of its session. `at` is `stored`, so that a process that still has format 3 open can add nothing to a tail that nobody looks at.
  `
  UPDATE session SET head = last.n, length = last.position + 1, updated = last.at
  FROM (
    SELECT session, max(n) AS n, position, at FROM chunk
    WHERE n > (SELECT value FROM counter WHERE name = 'folded') GROUP BY session
  ) AS last
  WHERE session.n = last.session;
  CREATE TABLE twin (n INTEGER PRIMARY KEY, first INTEGER NOT NULL) STRICT;
  INSERT INTO twin SELECT n, first FROM (
    SELECT n, min(n) OVER (PARTITION BY id) AS first FROM chunk WHERE session > 0
  ) WHERE n > first;
  UPDATE chunk SET previous = (SELECT first FROM twin WHERE twin.n = previous) WHERE previous IN (SELECT n FROM twin);
  UPDATE session SET head = (SELECT first FROM twin WHERE twin.n = head) WHERE head IN (SELECT n FROM twin);
  DELETE FROM chunk_blob WHERE chunk IN (SELECT n FROM twin);
  DELETE FROM word WHERE rowid IN (SELECT n FROM twin WHERE n <= (SELECT value FROM counter WHERE name = 'indexed'));
  UPDATE chunk SET id = x'', previous = NULL, position = 0, session = -session, body = '' WHERE n IN (SELECT n FROM twin);
  DROP TABLE twin;
  DROP TABLE digest;
  DELETE FROM counter WHERE name = 'folded';
  ALTER TABLE chunk RENAME COLUMN at TO stored;
  CREATE UNIQUE INDEX chunk_id ON chunk (id) WHERE session > 0;
  ALTER TABLE run ADD COLUMN queue TEXT;
  ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE run ADD COLUMN not_before INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE run ADD COLUMN cancel TEXT;
  ALTER TABLE run ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX run_changed ON run (changed);
  CREATE INDEX run_queue ON run (queue, priority DESC, n) WHERE queue IS NOT NULL AND status IN ('queued', 'running');
  `,
]

/** Refuses what is not ours, or is newer, before anything is written to it; what is older, too, if nothing may be. */
export function checkFormat(db: DatabaseSync, path: string, readOnly: boolean): void {
  const format = formatOf(migrations)
  checkFileFormat(db, path, format)
  if (readOnly) checkNewest(db, path, format)
}

/** Brings a database up to the newest version, all steps in one transaction. */
export function migrate(db: DatabaseSync, path: string, steps: readonly string[] = migrations): void {
  migrateFile(db, path, formatOf(steps))
}

function formatOf(steps: readonly string[]): FileFormat {
  return { applicationId, steps, what: 'The store', contents: 'the store' }
}
