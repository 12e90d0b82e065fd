import type { DatabaseSync } from 'node:sqlite'
import { RathError } from '../errors.ts'

/** What a file of ours is, whoever keeps it. */
export interface FileFormat {
  /** Four letters that mark the file. */
  readonly applicationId: number
  /** Each takes the schema from the version of its index to the next. */
  readonly steps: readonly string[]
  /** In messages: `The store`, and what another path is chosen for. */
  readonly what: string
  readonly contents: string
}

/** Refuses what is not ours, or is newer, before anything is written to it. */
export function checkFileFormat(
  db: DatabaseSync,
  path: string,
  { applicationId, steps, what, contents }: FileFormat,
): void {
  const id = pragma(db, 'application_id')
  if (id !== applicationId && (id !== 0 || hasTables(db))) {
    throw new RathError(
      'store-foreign',
      `${path} is a SQLite database of another program. Choose another path for ${contents}; this file was left as it is.`,
      { data: { path } },
    )
  }
  const version = pragma(db, 'user_version')
  if (version <= steps.length) return
  throw new RathError(
    'store-newer',
    `${what} ${path} has format ${version}, and this openrath reads up to ${steps.length}: update openrath. The file was left as it is.`,
    { data: { path, version, reads: steps.length } },
  )
}

/** Refuses what is older where nothing may be written, because reading needs the newest version, too. */
export function checkNewest(db: DatabaseSync, path: string, { steps, what }: FileFormat): void {
  const version = pragma(db, 'user_version')
  if (version === steps.length) return
  throw new RathError(
    'store-read-only',
    `${what} ${path} has format ${version}, and is read in format ${steps.length}: open it once without readOnly, which brings it forward.`,
    { data: { path, version, reads: steps.length } },
  )
}

/** Brings a database up to the newest version, all steps in one transaction. */
export function migrateFile(db: DatabaseSync, path: string, format: FileFormat): void {
  const { applicationId, steps } = format
  checkFileFormat(db, path, format)
  if (pragma(db, 'user_version') === steps.length) return
  db.exec('BEGIN EXCLUSIVE')
  try {
    // Another process may have migrated while this one waited for the lock.
    checkFileFormat(db, path, format)
    for (const step of steps.slice(pragma(db, 'user_version'))) db.exec(step)
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${steps.length}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function hasTables(db: DatabaseSync): boolean {
  const { count } = db.prepare('SELECT count(*) AS count FROM sqlite_schema').get() as { count: number }
  return count > 0
}

function pragma(db: DatabaseSync, name: string): number {
  return (db.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[name] ?? 0
}
