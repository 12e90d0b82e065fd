import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { StoreOptions } from '../../spec.ts'
import { isBusy, toStoreError } from './errors.ts'
import { checkFormat, migrate } from './schema.ts'

export type SqliteOptions = Pick<StoreOptions, 'durability' | 'readOnly' | 'busyTimeout'>

/** One connection: prepared statements kept, errors in our words, waiting for other writers without blocking the event loop. */
export class Database {
  readonly path: string
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  readonly #busyTimeout: number

  private constructor(path: string, db: DatabaseSync, busyTimeout: number) {
    this.path = path
    this.#db = db
    this.#busyTimeout = busyTimeout
  }

  static async open(given: string, options: SqliteOptions): Promise<Database> {
    const { durability = 'full', readOnly = false, busyTimeout = 30_000 } = options
    const path = resolve(given)
    try {
      if (!readOnly) createFile(path)
      const { DatabaseSync } = await importSqlite()
      const db = new DatabaseSync(readOnly ? readableFrom(path) : path, { readOnly, timeout: 100 })
      const database = new Database(path, db, busyTimeout)
      await database.#prepare(readOnly, durability)
      return database
    } catch (error) {
      throw toStoreError(systemError(error), path)
    }
  }

  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.#db.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  /** Runs `work` in a transaction that holds the write lock from its start. */
  async write<T>(work: () => T): Promise<T> {
    return this.#patiently(() => this.#transact(work))
  }

  /**
   * The same, done when it returns, and only while another process writes a promise. `undo` follows when nothing came of `work`, and
   * may ask for another try; `done` follows when it is durable.
   */
  attempt(
    work: () => void,
    { undo, done }: { undo(error: unknown): 'again' | undefined; done(): void },
  ): Promise<void> | undefined {
    const transact = () => {
      try {
        this.#transact(work)
      } catch (error) {
        if (undo(error) !== 'again') throw error
        this.#transact(work)
      }
    }
    try {
      transact()
    } catch (error) {
      if (!isBusy(error)) throw toStoreError(error, this.path)
      return this.#patiently(transact).then(done)
    }
    done()
    return undefined
  }

  async read<T>(work: () => T): Promise<T> {
    return this.#patiently(work)
  }

  exec(text: string): void {
    this.#db.exec(text)
  }

  close(): void {
    this.#statements.clear()
    if (this.#db.isOpen) this.#db.close()
  }

  #transact<T>(work: () => T): T {
    this.sql('BEGIN IMMEDIATE').run()
    try {
      const result = work()
      this.sql('COMMIT').run()
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.sql('ROLLBACK').run()
      throw error
    }
  }

  async #prepare(readOnly: boolean, durability: 'normal' | 'full'): Promise<void> {
    try {
      await this.#patiently(() => {
        checkFormat(this.#db, this.path)
        if (!readOnly) this.#db.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL')
        this.#db.exec(
          // Without fullfsync, macOS leaves what it calls written in the disk's own memory; elsewhere it changes nothing.
          durability === 'full'
            ? 'PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON'
            : 'PRAGMA synchronous = NORMAL',
        )
        migrate(this.#db, this.path)
      })
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** SQLite's own wait would block this process; it is kept short, and the long wait happens here. */
  async #patiently<T>(work: () => T): Promise<T> {
    const deadline = Date.now() + this.#busyTimeout
    for (let attempt = 0; ; attempt++) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error) || Date.now() >= deadline) throw toStoreError(error, this.path)
        await sleep(Math.random() * Math.min(2 + attempt * 2, 50))
      }
    }
  }
}

/** Makes the file readable by its owner only. `.openrath` becomes a private folder that git ignores. */
function createFile(path: string): void {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (basename(folder) === '.openrath' && !existsSync(`${folder}/.gitignore`))
    writeFileSync(`${folder}/.gitignore`, '*\n')
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  // SQLite would only say that it cannot open the file.
  for (const place of [folder, path]) accessSync(place, constants.W_OK)
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

/** Node 22 warns that its SQLite is experimental; what this library uses of it is stable since, so that one warning is kept back. */
async function importSqlite(): Promise<typeof import('node:sqlite')> {
  const { emitWarning } = process
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    const text = typeof warning === 'string' ? warning : warning.message
    if (!text.includes('SQLite is an experimental feature'))
      Reflect.apply(emitWarning, process, [warning, ...rest])
  }) as typeof process.emitWarning
  try {
    return await import('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

/** File-system errors as if SQLite had met them, so that one table holds all the words. */
function systemError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException)?.code
  const errcode = {
    EROFS: 8,
    EACCES: 8,
    EPERM: 8,
    ENOSPC: 13,
    EDQUOT: 13,
    ENOTDIR: 14,
    EEXIST: 14,
    ENAMETOOLONG: 14,
    EISDIR: 14,
    ENOENT: 14,
  }[code ?? '']
  return errcode === undefined ? error : Object.assign(error as Error, { code: 'ERR_SQLITE_ERROR', errcode })
}
