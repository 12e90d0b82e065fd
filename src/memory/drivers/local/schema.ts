import type { FileFormat } from '../../../base/sqlite/format.ts'

/** Marks a database file as memories of ours: the letters RATM. */
const applicationId = 0x5241544d

/**
 * Each step takes the schema from the version of its index to the next. A released step is never edited: a change is a new step.
 *
 * `entry` is the truth; the rest can be made of it again. An entry's `n` numbers it for the index, and an update gives it a new one.
 * `change` lists the numbers that were written since `block` and `segment` were last brought up to date, and `tail` holds the words of those
 * that are new among them. Deleted numbers are in `change` and nowhere else. Numbers are never given out again.
 */
const migrations: readonly string[] = [
  `
  CREATE TABLE entry (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL,
    category INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    series INTEGER NOT NULL,
    place REAL NOT NULL,
    rejected INTEGER NOT NULL,
    scattered INTEGER NOT NULL,
    length INTEGER NOT NULL,
    at REAL NOT NULL,
    written REAL NOT NULL,
    expires REAL,
    version INTEGER NOT NULL,
    key TEXT,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    source TEXT NOT NULL,
    text TEXT NOT NULL
  ) STRICT;
  CREATE INDEX entry_at ON entry (at);
  CREATE INDEX entry_scope ON entry (scope, at);
  CREATE UNIQUE INDEX entry_key ON entry (key, scope) WHERE key IS NOT NULL;
  CREATE INDEX entry_series ON entry (series, place) WHERE series <> 0;
  CREATE INDEX entry_lane ON entry (lane) WHERE lane <> 0;
  CREATE INDEX entry_expires ON entry (expires) WHERE expires IS NOT NULL;
  CREATE TABLE revision (
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (id, version)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE origin (chunk TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (chunk, id)) STRICT, WITHOUT ROWID;
  CREATE TABLE name (n INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (kind, text)) STRICT;
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE change (seq INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER NOT NULL) STRICT;
  CREATE TABLE tail (n INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT;
  CREATE TABLE block (n INTEGER PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
  CREATE TABLE segment (n INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, level INTEGER NOT NULL, docs INTEGER NOT NULL) STRICT;
  CREATE TABLE posting (
    segment INTEGER NOT NULL,
    word TEXT NOT NULL,
    count INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (segment, word)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE vector (seq INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER NOT NULL UNIQUE, sketch BLOB NOT NULL) STRICT;
  CREATE TABLE vector_exact (n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
  `,
  // Turns of sessions that were forgotten, so that committing the session again does not bring them back.
  'CREATE TABLE forgotten (key TEXT NOT NULL, scope INTEGER NOT NULL, PRIMARY KEY (key, scope)) STRICT, WITHOUT ROWID;',
]

export const format: FileFormat = {
  applicationId,
  steps: migrations,
  what: 'The memory',
  contents: 'the memories',
}
