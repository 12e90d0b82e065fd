import { RathError } from '../base/errors.ts'
import type { EntryName, StoreDriver, Touched, Unit } from './driver.ts'

/** What an operation reads and writes. `decide` must throw before it changes the unit, if it throws. */
export interface Operation<T> {
  readonly sessions?: readonly string[]
  readonly runs?: readonly string[]
  readonly entries?: readonly EntryName[]
  /** May run more than once, when a transaction has to be tried again. */
  decide(unit: Unit): T
}

interface Waiting {
  readonly operation: Operation<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

const largestBatch = 1000

/**
 * Group commit: operations that arrive while a transaction is running, or in the same turn of the event loop, share the
 * next transaction and with it one wait for the disk. Each is acknowledged when that transaction is durable, and one
 * that is refused does not disturb the others.
 */
export class Committer {
  readonly #driver: StoreDriver
  #waiting: Waiting[] = []
  #flushing: Promise<void> | undefined
  #closed = false

  constructor(driver: StoreDriver) {
    this.#driver = driver
  }

  submit<T>(operation: Operation<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ operation, resolve: resolve as (value: unknown) => void, reject })
      this.#flushing ??= this.#flush()
    })
  }

  /** Refuses new operations and waits for the accepted ones. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#flushing
  }

  async #flush(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, largestBatch)
      await this.#commit(batch)
    }
    this.#flushing = undefined
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const settled: (() => void)[] = []
    try {
      await this.#driver.commit(touchedBy(batch), unit => {
        settled.length = 0
        for (const { operation, resolve, reject } of batch) {
          try {
            const result = operation.decide(unit)
            settled.push(() => resolve(result))
          } catch (error) {
            settled.push(() => reject(error))
          }
        }
      })
    } catch (error) {
      if (batch.length > 1 && error instanceof RathError && error.code === 'chunk-missing') {
        // One of them counts on chunks that are gone. The others are not to suffer for it.
        for (const each of batch) await this.#commit([each])
      } else for (const { reject } of batch) reject(error)
      return
    }
    for (const settle of settled) settle()
  }
}

function touchedBy(batch: readonly Waiting[]): Touched {
  const sessions = new Set<string>()
  const runs = new Set<string>()
  const entries: EntryName[] = []
  for (const { operation } of batch) {
    for (const id of operation.sessions ?? []) sessions.add(id)
    for (const id of operation.runs ?? []) runs.add(id)
    entries.push(...(operation.entries ?? []))
  }
  return { sessions, runs, entries }
}

export function closedError(): RathError {
  return new RathError('store-closed', 'The store is closed; open it again with openStore.')
}
