import { RathError } from '../base/errors.ts'
import { type EntryName, isRefusal, type Rows, type StoreDriver, type Touched } from './driver.ts'

/** What an operation reads and writes. When `decide` refuses with a RathError, what it has written before stays. */
export interface Operation<T> {
  readonly sessions?: readonly string[]
  readonly runs?: readonly string[]
  readonly entries?: readonly EntryName[]
  /** It deletes its sessions. */
  readonly deletes?: boolean
  /** May run more than once, when a transaction has to be tried again. */
  decide(rows: Rows): T
}

interface Waiting {
  readonly operation: Operation<unknown>
  /** Who asks again and again. */
  readonly writer?: string
  resolve(value: unknown): void
  reject(error: unknown): void
}

const largestBatch = 1000
/** The end of the code that runs now; `queueMicrotask` would do more than that. */
const soon = Promise.resolve()
/** A writer that awaits each of its operations may keep the event loop from everything else for so long. */
const longestTurnMs = 5

/**
 * Group commit: operations that arrive while a transaction is running, or in the same turn of the event loop, share the
 * next transaction and with it one wait for the disk. One that seems to be alone is not made to wait for a turn to end: it is
 * committed as soon as the code that asked for it pauses, and at once when the same writer asks again. Each is acknowledged when
 * its transaction is durable, and one that is refused does not disturb the others.
 */
export class Committer {
  readonly #driver: StoreDriver
  readonly #waiting: Waiting[] = []
  #busy = false
  /** The last transaction had one operation only. */
  #alone = true
  /** Whose operations were all of those of the last transaction. */
  #writer: string | undefined
  /** When the first transaction of this turn of the event loop was asked for. */
  #turnBegan: number | undefined
  #nextTurn: Promise<void> | undefined
  #emptied: (() => void) | undefined
  #closed = false

  constructor(driver: StoreDriver) {
    this.#driver = driver
  }

  submit<T>(operation: Operation<T>, writer?: string): Promise<T> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise<unknown>((resolve, reject) => {
      this.#waiting.push({ operation, resolve, reject, ...(writer !== undefined && { writer }) })
      if (this.#busy) return
      this.#busy = true
      if (this.#alone && this.#turnHasTime()) void soon.then(this.#flush)
      else setImmediate(this.#flush)
    }) as Promise<T>
  }

  /**
   * Commits an operation at once where nobody else would share its transaction: with a driver that never waits, or for a writer that has been
   * alone. Returns nothing when it is done, and throws what is refused. With others about it is `submit`.
   */
  write(operation: Operation<void>, writer: string): Promise<void> | undefined {
    if (this.#closed) throw closedError()
    if (this.#driver.neverWaits) {
      if (this.#waiting.length > 0) this.#flush()
      this.#commitNow(operation)
      return this.#pause()
    }
    const isAlone = !this.#busy && this.#writer === writer
    return isAlone && this.#turnHasTime() ? this.#commitNow(operation) : this.submit(operation, writer)
  }

  /** Refuses new operations and waits for the accepted ones. */
  async close(): Promise<void> {
    this.#closed = true
    if (!this.#busy) return
    await new Promise<void>(resolve => {
      this.#emptied = resolve
    })
  }

  readonly #flush = (): void => {
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch()
      this.#alone = batch.length === 1
      const writer = batch[0]?.writer
      this.#writer = batch.every(each => each.writer === writer) ? writer : undefined
      const running = this.#commit(batch)
      if (running) return void running.then(this.#flush)
    }
    this.#busy = false
    this.#emptied?.()
  }

  /** Whoever comes back to a session that is deleted here has to wait: a driver would let the new one have what the old one left. */
  #nextBatch(): Waiting[] {
    if (this.#waiting.length === 1) return this.#waiting.splice(0)
    const gone = new Set<string>()
    const isLate = ({ operation: { sessions = none, deletes } }: Waiting) => {
      if (!deletes) return gone.size > 0 && sessions.some(id => gone.has(id))
      for (const id of sessions) gone.add(id)
      return false
    }
    const end = this.#waiting.slice(0, largestBatch).findIndex(isLate)
    return this.#waiting.splice(0, end < 0 ? largestBatch : end)
  }

  /** Resolves in the next turn of the event loop when this one has taken long; until then nobody has to pause. */
  #pause(): Promise<void> | undefined {
    if (this.#turnHasTime()) return undefined
    this.#nextTurn ??= new Promise(resolve =>
      setImmediate(() => {
        this.#nextTurn = undefined
        resolve()
      }),
    )
    return this.#nextTurn
  }

  #turnHasTime(): boolean {
    const now = performance.now()
    if (this.#turnBegan === undefined) {
      this.#turnBegan = now
      setImmediate(() => {
        this.#turnBegan = undefined
      })
    }
    return now - this.#turnBegan < longestTurnMs
  }

  #commitNow(operation: Operation<void>): Promise<void> | undefined {
    let answer: Answer | undefined
    const settle = () => {
      if (answer && 'error' in answer) throw answer.error
    }
    const running = this.#driver.commit(touchedByOne(operation), rows => {
      answer = this.#answer(operation, rows)
    })
    if (!running) {
      settle()
      return undefined
    }
    this.#busy = true
    const done = running.then(settle)
    done.then(this.#flush, this.#flush)
    return done
  }

  /** Settles every operation of a batch; returns nothing when it has done so already, as it can with a driver that never waits. */
  #commit(batch: readonly Waiting[]): Promise<void> | undefined {
    let answers: Answer[] = []
    const settle = () => {
      for (let i = 0; i < batch.length; i++) {
        const { resolve, reject } = batch[i] as Waiting
        const answer = answers[i] as Answer
        if ('error' in answer) reject(answer.error)
        else resolve(answer.value)
      }
    }
    try {
      const running = this.#driver.commit(touchedBy(batch), rows => {
        answers = batch.map(({ operation }) => this.#answer(operation, rows))
      })
      if (running) return running.then(settle, error => this.#failed(batch, error))
    } catch (error) {
      return this.#failed(batch, error)
    }
    settle()
    return undefined
  }

  /** What is thrown and is not a refusal fails the transaction, where that takes back what was changed. */
  #answer(operation: Operation<unknown>, rows: Rows): Answer {
    try {
      return { value: operation.decide(rows) }
    } catch (error) {
      if (this.#driver.neverWaits || isRefusal(error)) return { error }
      throw error
    }
  }

  #failed(batch: readonly Waiting[], error: unknown): Promise<void> | undefined {
    if (batch.length > 1 && error instanceof RathError && error.code === 'chunk-missing') {
      return this.#oneByOne(batch)
    }
    for (const { reject } of batch) reject(error)
    return undefined
  }

  /** One of them counts on chunks that are gone. The others are not to suffer for it. */
  async #oneByOne(batch: readonly Waiting[]): Promise<void> {
    for (const each of batch) await this.#commit([each])
  }
}

type Answer = { readonly value: unknown } | { readonly error: unknown }

const none: readonly never[] = []

function touchedByOne({ sessions = none, runs = none, entries = none }: Operation<unknown>): Touched {
  return { sessions, runs, entries }
}

function touchedBy(batch: readonly Waiting[]): Touched {
  if (batch.length === 1) return touchedByOne((batch[0] as Waiting).operation)
  const sessions = new Set<string>()
  const runs = new Set<string>()
  const entries: EntryName[] = []
  for (const { operation } of batch) {
    for (const id of operation.sessions ?? none) sessions.add(id)
    for (const id of operation.runs ?? none) runs.add(id)
    entries.push(...(operation.entries ?? none))
  }
  return { sessions, runs, entries }
}

export function closedError(): RathError {
  return new RathError('store-closed', 'The store is closed; open it again with openStore.')
}
