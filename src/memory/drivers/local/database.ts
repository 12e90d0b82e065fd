import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBusy, toMemoryError } from './errors.ts'
import { checkFormat, migrate } from './schema.ts'

export interface DatabaseOptions {
  /** `full` (default) survives a power cut; `normal` every crash of the process. */
  readonly durability?: 'normal' | 'full'
  /** Milliseconds to wait for another process. Default 30,000. */
  readonly busyTimeout?: number
}

export type Value = string | number | null | Uint8Array
export type Row = Record<string, Value>

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

  static async open(
    given: string,
    { durability = 'full', busyTimeout = 30_000 }: DatabaseOptions,
  ): Promise<Database> {
    const path = resolve(given)
    try {
      createFile(path)
      const { DatabaseSync } = await importSqlite()
      const database = new Database(path, new DatabaseSync(path, { timeout: 100 }), busyTimeout)
      await database.#prepare(durability)
      return database
    } catch (error) {
      throw toMemoryError(error, path)
    }
  }

  run(text: string, ...values: Value[]): void {
    this.#statement(text).run(...values)
  }

  get(text: string, ...values: Value[]): Row | undefined {
    return this.#statement(text).get(...values) as Row | undefined
  }

  all(text: string, ...values: Value[]): Row[] {
    return this.#statement(text).all(...values) as Row[]
  }

  iterate(text: string, ...values: Value[]): IterableIterator<Row> {
    return this.#statement(text).iterate(...values) as IterableIterator<Row>
  }

  /** Runs `work` in a transaction that holds the write lock from its start. */
  async write<T>(work: () => T): Promise<T> {
    return this.#patiently(() => this.#inTransaction('BEGIN IMMEDIATE', work))
  }

  /** Runs `work` on one state of the database, whatever others write meanwhile. */
  async read<T>(work: () => T): Promise<T> {
    return this.#patiently(() => this.#inTransaction('BEGIN', work))
  }

  close(): void {
    this.#statements.clear()
    if (this.#db.isOpen) this.#db.close()
  }

  #statement(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.#db.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  #inTransaction<T>(begin: string, work: () => T): T {
    this.run(begin)
    try {
      const result = work()
      this.run('COMMIT')
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.run('ROLLBACK')
      throw error
    }
  }

  async #prepare(durability: 'normal' | 'full'): Promise<void> {
    try {
      await this.#patiently(() => {
        checkFormat(this.#db, this.path)
        this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA cache_size = -32000')
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
        if (!isBusy(error) || Date.now() >= deadline) throw toMemoryError(error, this.path)
        await sleep(Math.random() * Math.min(2 + attempt * 2, 50))
      }
    }
  }
}

/** Makes the file readable by its owner only. A folder `.openrath` on the way becomes private, and git ignores it. */
function createFile(path: string): void {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const parts = folder.split(sep)
  const home = parts.slice(0, parts.lastIndexOf('.openrath') + 1).join(sep)
  if (home !== '' && !existsSync(`${home}/.gitignore`)) writeFileSync(`${home}/.gitignore`, '*\n')
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  // SQLite would only say that it cannot open the file.
  for (const place of [folder, path]) accessSync(place, constants.W_OK)
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
