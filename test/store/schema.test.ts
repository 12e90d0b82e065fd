import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { applicationId, migrate, migrations } from '../../src/store/drivers/sqlite/schema.ts'
import { refusal } from '../session/make.ts'

const first = 'CREATE TABLE thing (a); INSERT INTO thing VALUES (1)'
const second = 'ALTER TABLE thing ADD COLUMN b; UPDATE thing SET b = a + 1'
const third = 'CREATE TABLE other AS SELECT a + b AS c FROM thing'

const get = (db: DatabaseSync, sql: string) => Object.values(db.prepare(sql).get() ?? {})[0]
const version = (db: DatabaseSync) => get(db, 'PRAGMA user_version')

test('an older version is brought forward step by step', () => {
  for (const start of [0, 1, 2, 3]) {
    const db = new DatabaseSync(':memory:')
    const steps = [first, second, third]
    if (start > 0) migrate(db, 'store', steps.slice(0, start))
    expect(version(db)).toBe(start)
    migrate(db, 'store', steps)
    expect([version(db), get(db, 'PRAGMA application_id')]).toEqual([3, applicationId])
    expect(get(db, 'SELECT c FROM other')).toBe(3)
  }
})

test('a step that fails takes all the others back with it', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, 'store', [first])
  expect(() => migrate(db, 'store', [first, second, 'CREATE TABLE half (a); SELECT nonsense'])).toThrow(
    /nonsense/,
  )
  expect(db.isTransaction).toBe(false)
  expect(version(db)).toBe(1)
  expect(get(db, "SELECT group_concat(name) FROM pragma_table_info('thing')")).toBe('a')
  expect(get(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'")).toBe(0)
  migrate(db, 'store', [first, second])
  expect(version(db)).toBe(2)
})

test('a step that fails on a new file leaves it empty', () => {
  const db = new DatabaseSync(':memory:')
  expect(() => migrate(db, 'store', [first, 'nonsense'])).toThrow()
  expect([
    version(db),
    get(db, 'PRAGMA application_id'),
    get(db, 'SELECT count(*) FROM sqlite_schema'),
  ]).toEqual([0, 0, 0])
})

test('a store that is up to date is not written to', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, 'store')
  const before = get(db, 'PRAGMA schema_version')
  migrate(db, 'store')
  expect(get(db, 'PRAGMA schema_version')).toBe(before)
  expect(version(db)).toBe(migrations.length)
})

test('a newer version is refused, whoever asks', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, 'store', [first, second])
  expect(refusal(() => migrate(db, 'store', [first])).code).toBe('store-newer')
  expect(version(db)).toBe(2)
})

test('a process that has an older format open can neither write nor collect once another brought the store forward', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, 'store', migrations.slice(0, 2))
  // What format 2 does to append, to look at a session before it is changed, and to mark what gc spares.
  const statements = [
    'INSERT INTO chunk (id, previous, position, session, written, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
    'UPDATE session SET head = ?, length = ?, updated = ?, version = version + 1 WHERE n = ? AND version = ?',
    'SELECT 1 FROM session WHERE n = ? AND version = ?',
    'SELECT head FROM session WHERE head IS NOT NULL UNION SELECT n FROM chunk WHERE written >= ?',
  ]
  for (const sql of statements) expect(() => db.prepare(sql)).not.toThrow()
  migrate(db, 'store')
  for (const sql of statements) expect(() => db.prepare(sql), sql).toThrow(/no (such )?column/)
})

test('a process that has format 3 open can add nothing to a tail, fold it or collect once another brought the store forward', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, 'store', migrations.slice(0, 3))
  const statements = [
    'INSERT INTO chunk (n, id, previous, position, session, at, body) VALUES (?, unhex(?), ?, ?, ?, ?, ?)',
    'INSERT OR IGNORE INTO digest SELECT id, n FROM chunk WHERE session > 0 ORDER BY id',
    'SELECT head FROM session WHERE head IS NOT NULL UNION SELECT n FROM chunk WHERE at >= ?',
  ]
  for (const sql of statements) expect(() => db.prepare(sql)).not.toThrow()
  migrate(db, 'store')
  for (const sql of statements)
    expect(() => db.prepare(sql), sql).toThrow(/no (such )?(column|table)|no column/)
})
