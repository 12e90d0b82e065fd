import { accessSync, constants, lstatSync, readlinkSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { RathError } from '../../../base/errors.ts'
import { Connection } from '../../../base/sqlite/connection.ts'
import { isBusy } from '../../../base/sqlite/errors.ts'
import { createFile, openDatabase, setDurability } from '../../../base/sqlite/open.ts'
import type { StoreOptions } from '../../spec.ts'
import { toStoreError } from './errors.ts'
import { checkFormat, migrate } from './schema.ts'

export type SqliteOptions = Pick<StoreOptions, 'durability' | 'readOnly' | 'busyTimeout'>

/** The connection to the file of a store. */
export class Database extends Connection {
  static async open(given: string, options: SqliteOptions): Promise<Database> {
    const { durability = 'full', readOnly = false, busyTimeout = 30_000 } = options
    const path = resolve(given)
    try {
      refuseLinks(path)
      if (!readOnly) createFile(path, homeOf(path))
      const db = await openDatabase(readOnly ? readableFrom(path) : path, { readOnly })
      const database = new Database(path, db, busyTimeout)
      await database.#prepare(readOnly, durability)
      return database
    } catch (error) {
      throw toStoreError(error, path)
    }
  }

  /** Runs `work` in a transaction that holds the write lock from its start. */
  locked<T>(work: () => T): T {
    return this.transact('BEGIN IMMEDIATE', work)
  }

  /** The same, waiting for other processes. */
  async write<T>(work: () => T): Promise<T> {
    return this.patiently(() => this.locked(work))
  }

  /**
   * Runs `work`, which writes in a transaction of its own. It is done when this returns, and only while another process writes this is a
   * promise. `undo` follows whenever nothing came of `work`; `done` follows when it is durable.
   */
  attempt(work: () => void, undo: () => void, done: () => void): Promise<void> | undefined {
    try {
      work()
    } catch (error) {
      undo()
      if (!isBusy(error)) throw toStoreError(error, this.path)
      return this.#attemptPatiently(work, undo).then(done)
    }
    done()
    return undefined
  }

  #attemptPatiently(work: () => void, undo: () => void): Promise<void> {
    return this.patiently(() => {
      try {
        work()
      } catch (error) {
        undo()
        throw error
      }
    })
  }

  async read<T>(work: () => T): Promise<T> {
    return this.patiently(work)
  }

  /** Another one whenever another connection has committed. */
  get version(): number {
    return (this.sql('PRAGMA data_version').get() as { data_version: number }).data_version
  }

  exec(text: string): void {
    this.db.exec(text)
  }

  protected inOurWords(error: unknown): unknown {
    return toStoreError(error, this.path)
  }

  async #prepare(readOnly: boolean, durability: 'normal' | 'full'): Promise<void> {
    await this.prepare(() => {
      checkFormat(this.db, this.path, readOnly)
      if (!readOnly) this.db.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL')
      setDurability(this.db, durability)
      migrate(this.db, this.path)
    })
  }
}

/**
 * What lies in `.openrath` came with the project, or was made by whatever works there. A link in its place would have the record read from and
 * written to a file that somebody else chose.
 */
function refuseLinks(path: string): void {
  const home = homeOf(path)
  if (home === undefined) return
  for (const name of [home, path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) {
    if (!lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink()) continue
    throw new RathError(
      'store-foreign',
      `${name} is a link, and a store in .openrath is not read or written through one: it leads to ${readlinkSync(name)}. Remove the link, or name the store you mean: --store sqlite:PATH or OPENRATH_STORE.`,
      { data: { path: name } },
    )
  }
}

/** `.openrath` becomes a folder that git ignores. */
function homeOf(path: string): string | undefined {
  const folder = dirname(path)
  return basename(folder) === '.openrath' ? folder : undefined
}

/** To read, SQLite wants to write a file beside the store. Where nobody can, nobody changes the store either, and it may do without. */
function readableFrom(path: string): string | URL {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  if (folderProblem(path) !== 'EROFS' || (log && log.size > 0)) return path
  return new URL(`${pathToFileURL(path).href}?immutable=1`)
}

function folderProblem(path: string): string | undefined {
  try {
    accessSync(dirname(path), constants.W_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}
