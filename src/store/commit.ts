import { RathError } from '../base/errors.ts'
import type { EntryName, Rows, StoreDriver, Touched } from './driver.ts'

/** What an operation reads and writes. `decide` must throw before it changes the rows, if it throws. */
export interface Operation<T> {
  readonly sessions?: readonly string[]
  readonly runs?: readonly string[]
  readonly entries?: readonly EntryName[]
  /** It deletes its sessions. */
  readonly deletes?: boolean
  /** May run more than once, when a transaction has to be tried again. */
  decide(rows: Rows): T
}

/** An operation whose caller is told something else than what was decided, or told it later. */
export interface AnsweredOperation<T, A> extends Operation<T> {
  /** Runs once, when what was decided is durable. */
  answer(decided: T): A | Promise<A>
}

interface Waiting {
  readonly operation: Operation<unknown> & Partial<AnsweredOperation<unknown, unknown>>
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
 * committed as soon as the code that asked for it pauses. Each is acknowledged when its transaction is durable, and one that
 * is refused does not disturb the others.
 */
export class Committer {
  readonly #driver: StoreDriver
  readonly #waiting: Waiting[] = []
  #busy = false
  /** The last transaction had one operation only. */
  #alone = true
  /** When the first transaction of this turn of the event loop was asked for. */
  #turnBegan: number | undefined
  #nextTurn: Promise<void> | undefined
  #emptied: (() => void) | undefined
  #closed = false

  constructor(driver: StoreDriver) {
    this.#driver = driver
  }

  submit<T, A>(operation: AnsweredOperation<T, A>): Promise<A>
  submit<T>(operation: Operation<T>): Promise<T>
  submit(operation: Operation<unknown>): Promise<unknown> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation, resolve, reject })
      if (this.#busy) return
      this.#busy = true
      if (this.#alone && this.#turnHasTime()) void soon.then(this.#flush)
      else setImmediate(this.#flush)
    })
  }

  /**
   * Operations that are done, in their order and behind whatever was accepted before, when this returns; only with a driver that never
   * waits, which has nothing to prepare. Each is decided for itself, and `refused` hears of those that were not done.
   */
  commitNow(
    operations: readonly Operation<unknown>[],
    refused: (error: unknown, index: number) => void,
  ): void {
    if (this.#closed) throw closedError()
    if (this.#waiting.length > 0) this.#flush()
    this.#driver.commit(untold, rows => {
      for (let i = 0; i < operations.length; i++) {
        try {
          operations[i]?.decide(rows)
        } catch (error) {
          refused(error, i)
        }
      }
    })
  }

  /** Resolves in the next turn of the event loop when this one has taken long; until then nobody has to pause. */
  pause(): Promise<void> | undefined {
    if (this.#turnHasTime()) return undefined
    this.#nextTurn ??= new Promise(resolve =>
      setImmediate(() => {
        this.#nextTurn = undefined
        resolve()
      }),
    )
    return this.#nextTurn
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
      this.#alone = this.#waiting.length === 1
      const running = this.#alone
        ? this.#commitOne(this.#waiting.pop() as Waiting)
        : this.#commit(this.#nextBatch())
      if (running) return void running.then(this.#flush)
    }
    this.#busy = false
    this.#emptied?.()
  }

  /** Whoever comes back to a session that is deleted here has to wait: a driver would let the new one have what the old one left. */
  #nextBatch(): Waiting[] {
    const gone = new Set<string>()
    const isLate = ({ operation: { sessions = none, deletes } }: Waiting) => {
      if (!deletes) return gone.size > 0 && sessions.some(id => gone.has(id))
      for (const id of sessions) gone.add(id)
      return false
    }
    const end = this.#waiting.slice(0, largestBatch).findIndex(isLate)
    return this.#waiting.splice(0, end < 0 ? largestBatch : end)
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

  /** The same as `#commit` for a batch of one, which is what most writers wait for. */
  #commitOne({ operation, resolve, reject }: Waiting): Promise<void> | undefined {
    let value: unknown
    let refusal: { readonly error: unknown } | undefined
    const settle = () => (refusal ? reject(refusal.error) : resolve(answerTo(operation, value)))
    try {
      const running = this.#driver.commit(touchedByOne(operation), rows => {
        refusal = undefined
        try {
          value = operation.decide(rows)
        } catch (error) {
          refusal = { error }
        }
      })
      if (running) return running.then(settle, reject)
      settle()
    } catch (error) {
      reject(error)
    }
    return undefined
  }

  /** Settles every operation of a batch; returns nothing when it has done so already, as it can with a driver that never waits. */
  #commit(batch: readonly Waiting[]): Promise<void> | undefined {
    let answers: Answer[] = []
    const settle = () => {
      for (let i = 0; i < batch.length; i++) {
        const { operation, resolve, reject } = batch[i] as Waiting
        const answer = answers[i] as Answer
        if ('error' in answer) reject(answer.error)
        else resolve(answerTo(operation, answer.value))
      }
    }
    try {
      const running = this.#driver.commit(touchedBy(batch.map(({ operation }) => operation)), rows => {
        answers = batch.map(({ operation }) => answerOf(operation, rows))
      })
      if (running) return running.then(settle, error => this.#failed(batch, error))
    } catch (error) {
      return this.#failed(batch, error)
    }
    settle()
    return undefined
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

function answerTo(operation: Waiting['operation'], decided: unknown): unknown {
  return operation.answer ? operation.answer(decided) : decided
}

type Answer = { readonly value: unknown } | { readonly error: unknown }

function answerOf(operation: Operation<unknown>, rows: Rows): Answer {
  try {
    return { value: operation.decide(rows) }
  } catch (error) {
    return { error }
  }
}

const none: readonly never[] = []

const untold: Touched = { sessions: none, runs: none, entries: none }

function touchedByOne({ sessions = none, runs = none, entries = none }: Operation<unknown>): Touched {
  return { sessions, runs, entries }
}

function touchedBy(operations: readonly Operation<unknown>[]): Touched {
  if (operations.length === 1) return touchedByOne(operations[0] as Operation<unknown>)
  const sessions = new Set<string>()
  const runs = new Set<string>()
  const entries: EntryName[] = []
  for (const operation of operations) {
    for (const id of operation.sessions ?? none) sessions.add(id)
    for (const id of operation.runs ?? none) runs.add(id)
    entries.push(...(operation.entries ?? none))
  }
  return { sessions, runs, entries }
}

export function closedError(): RathError {
  return new RathError('store-closed', 'The store is closed; open it again with openStore.')
}
