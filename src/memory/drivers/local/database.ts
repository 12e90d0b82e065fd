import { dirname, resolve, sep } from 'node:path'
import { Connection } from '../../../base/sqlite/connection.ts'
import { checkFileFormat, migrateFile } from '../../../base/sqlite/format.ts'
import { createFile, openDatabase, setDurability } from '../../../base/sqlite/open.ts'
import { toMemoryError } from './errors.ts'
import { format } from './schema.ts'

export type Value = string | number | null | Uint8Array
export type Row = Record<string, Value>

/** The connection to a file of memories. */
export class Database extends Connection {
  static async open(
    given: string,
    { durability = 'full', busyTimeout = 30_000 }: DatabaseOptions,
  ): Promise<Database> {
    const path = resolve(given)
    try {
      createFile(path, homeOf(path))
      const database = new Database(path, await openDatabase(path), busyTimeout)
      await database.#prepare(durability)
      return database
    } catch (error) {
      throw toMemoryError(error, path)
    }
  }

  run(text: string, ...values: Value[]): void {
    this.sql(text).run(...values)
  }

  get(text: string, ...values: Value[]): Row | undefined {
    return this.sql(text).get(...values) as Row | undefined
  }

  all(text: string, ...values: Value[]): Row[] {
    return this.sql(text).all(...values) as Row[]
  }

  iterate(text: string, ...values: Value[]): IterableIterator<Row> {
    return this.sql(text).iterate(...values) as IterableIterator<Row>
  }

  /** Runs `work` in a transaction that holds the write lock from its start. When it comes to nothing, committing it included, `undo` is told. */
  async write<T>(work: () => T, undo?: () => void): Promise<T> {
    return this.patiently(() => {
      try {
        return this.transact('BEGIN IMMEDIATE', work)
      } catch (error) {
        undo?.()
        throw error
      }
    })
  }

  /** Runs `work` on one state of the database, whatever others write meanwhile. */
  async read<T>(work: () => T): Promise<T> {
    return this.patiently(() => this.transact('BEGIN', work))
  }

  protected inOurWords(error: unknown): unknown {
    return toMemoryError(error, this.path)
  }

  async #prepare(durability: 'normal' | 'full'): Promise<void> {
    await this.prepare(() => {
      checkFileFormat(this.db, this.path, format)
      this.db.exec('PRAGMA journal_mode = WAL; PRAGMA cache_size = -32000')
      setDurability(this.db, durability)
      migrateFile(this.db, this.path, format)
    })
  }
}

/** The folder `.openrath` on the way to a file. */
function homeOf(path: string): string | undefined {
  const parts = dirname(path).split(sep)
  const depth = parts.lastIndexOf('.openrath') + 1
  return depth === 0 ? undefined : parts.slice(0, depth).join(sep)
}

/** How a file of memories is opened. Apart from the connection: whoever reads these types need not know those of `node:sqlite`. */
export interface DatabaseOptions {
  /** `full` (default) survives a power cut; `normal` every crash of the process. */
  readonly durability?: 'normal' | 'full'
  /** Milliseconds to wait for another process. Default 30,000. */
  readonly busyTimeout?: number
}
