import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBusy } from './errors.ts'

/** One connection: prepared statements kept, errors in our words, waiting for other writers without blocking the event loop. */
export abstract class Connection {
  readonly path: string
  protected readonly db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  readonly #busyTimeout: number

  protected constructor(path: string, db: DatabaseSync, busyTimeout: number) {
    this.path = path
    this.db = db
    this.#busyTimeout = busyTimeout
  }

  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = prepareNumbered(this.db, text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  close(): void {
    this.#statements.clear()
    if (this.db.isOpen) this.db.close()
  }

  protected abstract inOurWords(error: unknown): unknown

  protected transact<T>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => T): T {
    this.sql(begin).run()
    try {
      const result = work()
      this.sql('COMMIT').run()
      return result
    } catch (error) {
      if (this.db.isTransaction) this.sql('ROLLBACK').run()
      throw error
    }
  }

  /** SQLite's own wait would block this process; it is kept short, and the long wait happens here. */
  protected async patiently<T>(work: () => T): Promise<T> {
    const deadline = Date.now() + this.#busyTimeout
    for (let attempt = 0; ; attempt++) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error) || Date.now() >= deadline) throw this.inOurWords(error)
        await sleep(Math.random() * Math.min(2 + attempt * 2, 50))
      }
    }
  }

  /** The first work on a connection, which does not outlive its failure. */
  protected async prepare(work: () => void): Promise<void> {
    try {
      await this.patiently(work)
    } catch (error) {
      this.close()
      throw error
    }
  }
}

/**
 * A statement that takes its values in order, also where it numbers them (`?1`). Node 22 takes such a number for a name: it is given the
 * values by name there.
 */
function prepareNumbered(db: DatabaseSync, text: string): StatementSync {
  const statement = db.prepare(text)
  if (!/\?\d/.test(text) || takesNumbers(db)) return statement
  for (const method of ['run', 'get', 'all', 'iterate'] as const) {
    const given = statement[method].bind(statement) as (values: object) => unknown
    const inOrder = (...values: unknown[]) =>
      given(Object.fromEntries(values.map((value, i) => [`?${i + 1}`, value])))
    Object.defineProperty(statement, method, { value: inOrder })
  }
  return statement
}

let isTaken: boolean | undefined

function takesNumbers(db: DatabaseSync): boolean {
  if (isTaken === undefined) {
    try {
      isTaken = db.prepare('SELECT ?1').get(1) !== undefined
    } catch {
      isTaken = false
    }
  }
  return isTaken
}
