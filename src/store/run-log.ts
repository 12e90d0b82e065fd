import { RathError } from '../base/errors.ts'
import { isJson, type JsonObject, toJson } from '../base/json.ts'
import type { Committer, Operation } from './commit.ts'
import type { EntryName, StoreDriver } from './driver.ts'
import { type Encoded, encode, encodeWritten } from './encode.ts'
import type { Redactor } from './redact.ts'
import {
  addBlobs,
  changing,
  checkLease,
  checkName,
  checkStatus,
  concluding,
  entryName,
  heldRun,
  newRow,
} from './run-decisions.ts'
import type { Keeping, Sessions } from './sessions.ts'
import type { NewEntry, RunChange, RunLog, RunRow, RunWrite } from './spec.ts'

/** What a log writes through. */
export interface LogParts {
  readonly driver: StoreDriver
  readonly committer: Committer
  readonly redactor: Redactor
  readonly sessions: Sessions
}

/** The one writer of a run. The fence is checked in the transaction that writes, so an owner that was replaced writes nothing. */
export class Log implements RunLog {
  readonly run: string
  readonly fence: number
  readonly #parts: LogParts
  /** What the run begins with, until it goes with the first write. */
  #opening: readonly Operation<unknown>[]
  readonly #writing = new Set<Promise<void>>()
  #refusal: { readonly error: unknown } | undefined

  constructor(run: string, fence: number, opening: readonly Operation<unknown>[], parts: LogParts) {
    this.run = run
    this.fence = fence
    this.#opening = opening
    this.#parts = parts
  }

  append(writes: readonly RunWrite[]): Promise<void> | undefined {
    const opening = this.#opening
    this.#opening = []
    const written = this.#parts.driver.neverWaits
      ? this.#appendNow(opening, writes)
      : this.#appendEach(opening, writes)
    return written && this.#tracked(written)
  }

  async settled(): Promise<void> {
    if (this.#writing.size > 0) await Promise.allSettled(this.#writing)
    const refusal = this.#refusal
    this.#refusal = undefined
    if (refusal) throw refusal.error
  }

  async renew(leaseMs: number): Promise<RunRow> {
    checkLease(leaseMs)
    return this.#parts.committer.submit(
      changing(this.run, rows => ({
        ...heldRun(rows, this.run, this.fence),
        leaseUntil: rows.now + leaseMs,
        updated: rows.now,
      })),
    )
  }

  async release(): Promise<void> {
    await this.append([{ kind: 'update', change: { release: true } }])
    await this.settled()
  }

  #tracked(writing: Promise<void>): Promise<void> {
    const tracked = writing.finally(() => this.#writing.delete(tracked))
    this.#writing.add(tracked)
    tracked.catch(error => {
      this.#refusal ??= { error }
    })
    return tracked
  }

  /** With a driver that never waits, everything is done when this returns; what is refused is thrown. */
  #appendNow(opening: readonly Operation<unknown>[], writes: readonly RunWrite[]): Promise<void> | undefined {
    const { committer } = this.#parts
    const operations: (Operation<unknown> | Keeping)[] = [...opening]
    for (const write of writes) {
      const operation = this.#operation(write)
      // A session of which nothing is known in this process: what the store has of it must be looked up first.
      if (operation === undefined) return this.#appendEach(opening, writes)
      operations.push(operation)
    }
    /** Places of sessions that count on chunks which are gone: collected, although this process remembers them as stored. */
    const lacking = new Set<number>()
    let refusal: { readonly error: unknown } | undefined
    committer.commitNow(operations, (error, i) => {
      if (error instanceof RathError && error.code === 'chunk-missing') lacking.add(i)
      else refusal ??= { error }
    })
    if (refusal) throw refusal.error
    let waits = committer.pause()
    for (let i = 0; i < operations.length; i++) {
      const left = lacking.has(i)
        ? this.#appendEach([], [writes[i - opening.length] as RunWrite])
        : (operations[i] as Partial<Keeping>).committed?.()
      if (left) waits = waits ? Promise.all([waits, left]).then(() => {}) : left
    }
    return waits
  }

  /** All are asked for in one turn, and so share a transaction. */
  async #appendEach(opening: readonly Operation<unknown>[], writes: readonly RunWrite[]): Promise<void> {
    await Promise.all([
      ...opening.map(operation => this.#parts.committer.submit(operation)),
      ...writes.map(write => this.#appendOne(write)),
    ])
  }

  async #appendOne(write: RunWrite): Promise<unknown> {
    if (write.kind === 'put') return this.#parts.sessions.put(write.session)
    return this.#parts.committer.submit(this.#operation(write) as Operation<unknown>)
  }

  #operation(write: RunWrite): Operation<unknown> | Keeping | undefined {
    switch (write.kind) {
      case 'put':
        return this.#parts.sessions.keeping(write.session)
      case 'update':
        return this.#updating(write.change)
      case 'intend':
        return this.#intending(write.entry)
      case 'conclude': {
        const outcome = this.#encoded(write.outcome, 'outcome')
        return concluding(
          entryName(this.run, write),
          outcome,
          rows => void heldRun(rows, this.run, this.fence),
        )
      }
    }
  }

  #updating(change: RunChange): Operation<RunRow> {
    checkStatus(change.status)
    if (change.output !== undefined) checkName(change.output, 'The output of a run')
    const data =
      change.data === undefined
        ? undefined
        : (this.#parts.redactor.json(toJson(change.data, 'data')) as JsonObject)
    return changing(this.run, rows => {
      const run = heldRun(rows, this.run, this.fence)
      return {
        ...run,
        status: change.status ?? run.status,
        output: change.output ?? run.output,
        data: data ?? run.data,
        ...(change.release && { owner: null, leaseUntil: 0 }),
        updated: rows.now,
      }
    })
  }

  #intending(entry: NewEntry): Operation<void> {
    checkName(entry.kind, 'The kind of an effect')
    const name: EntryName = entryName(this.run, entry)
    const request = this.#encoded(entry.request, 'request')
    return {
      runs: [this.run],
      entries: [name],
      decide: rows => {
        heldRun(rows, this.run, this.fence)
        if (rows.entry(name)) return
        addBlobs(rows, request)
        rows.setEntry(newRow(name, entry.kind, request, rows.now))
      },
    }
  }

  /** As it is written. That is done before this returns: nobody can change the value meanwhile, so it needs no copy. */
  #encoded(value: unknown, name: string): Encoded {
    const plain = isJson(value) ? value : toJson(value, name)
    const text = JSON.stringify(plain)
    const clean = this.#parts.redactor.json(plain, text)
    return clean === plain ? encodeWritten(plain, text) : encode(clean)
  }
}
