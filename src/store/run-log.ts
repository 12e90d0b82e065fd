import { RathError } from '../base/errors.ts'
import { isJson, type JsonObject, toJson } from '../base/json.ts'
import type { Session } from '../session/session.ts'
import type { Committer, Operation } from './commit.ts'
import type { EntryName, RunRowWrite, StoreDriver } from './driver.ts'
import { type Encoded, encode, encodeWritten } from './encode.ts'
import type { Redactor } from './redact.ts'
import { changing, checkLease, checkName, checkStatus, entryName, heldRun } from './run-decisions.ts'
import type { Keeping, Sessions } from './sessions.ts'
import type { RunChange, RunLog, RunRow, RunWrite } from './spec.ts'

/** What a log writes through. */
export interface LogParts {
  readonly driver: StoreDriver
  readonly committer: Committer
  readonly redactor: Redactor
  readonly sessions: Sessions
}

/** What one append writes: its values are written as text already, so that nobody can change them while it waits. */
interface Batch {
  readonly opening: readonly Operation<unknown>[]
  readonly sessions: readonly Session[]
  readonly writes: readonly RunRowWrite[]
  readonly entries: readonly EntryName[]
}

/** The one writer of a run. The fence is checked in the transaction that writes, so an owner that was replaced writes nothing. */
export class Log implements RunLog {
  readonly run: string
  readonly fence: number
  readonly #parts: LogParts
  /** What the run begins with, until it goes with the first write. */
  #opening: readonly Operation<unknown>[]
  readonly #writing = new Set<Promise<void>>()
  /** An append that has to ask the store something first; what follows goes behind it. */
  #asking: Promise<void> | undefined
  #refusal: { readonly error: unknown } | undefined

  constructor(run: string, fence: number, opening: readonly Operation<unknown>[], parts: LogParts) {
    this.run = run
    this.fence = fence
    this.#opening = opening
    this.#parts = parts
  }

  append(writes: readonly RunWrite[]): Promise<void> | undefined {
    const batch = this.#batchOf(writes)
    this.#opening = none
    const written = this.#asking ? this.#appendBehind(this.#asking, batch) : this.#append(batch)
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

  async #appendBehind(before: Promise<void>, batch: Batch): Promise<void> {
    await before
    await this.#append(batch)
  }

  #append(batch: Batch): Promise<void> | undefined {
    const keepings = batch.sessions.map(session => this.#parts.sessions.keeping(session))
    if (!keepings.some(keeping => keeping instanceof Promise))
      return this.#commit(batch, keepings as readonly Keeping[])
    const appending = Promise.all(keepings).then(known => this.#commit(batch, known))
    const asking = appending.then(ignore, ignore).then(() => {
      if (this.#asking === asking) this.#asking = undefined
    })
    this.#asking = asking
    return appending
  }

  #commit(batch: Batch, keepings: readonly Keeping[]): Promise<void> | undefined {
    try {
      const running = this.#parts.committer.write(this.#operation(batch, keepings), this.run)
      return running
        ? running.then(
            () => committed(keepings),
            error => this.#failed(error, batch),
          )
        : committed(keepings)
    } catch (error) {
      return this.#failed(error, batch)
    }
  }

  /** The chunks that a session counts on may have been collected, although this process remembers them as stored. */
  #failed(error: unknown, batch: Batch): Promise<void> {
    if (!(error instanceof RathError) || error.code !== 'chunk-missing') throw error
    const { sessions, committer, driver } = this.#parts
    sessions.forget()
    // A driver that never waits has not taken back that the run was begun.
    const again = driver.neverWaits ? { ...batch, opening: none } : batch
    return sessions.attempt(async () => {
      const keepings = await Promise.all(batch.sessions.map(session => sessions.keeping(session)))
      await committer.write(this.#operation(again, keepings), this.run)
      await committed(keepings)
    })
  }

  #operation({ opening, writes, entries }: Batch, keepings: readonly Keeping[]): Operation<void> {
    const all: readonly RunRowWrite[] =
      keepings.length === 0
        ? writes
        : [...keepings.map(({ keep }) => ({ kind: 'put', keep }) as const), ...writes]
    return {
      sessions: keepings.map(({ session }) => session),
      runs: [this.run],
      entries,
      decide: rows => {
        for (const operation of opening) operation.decide(rows)
        const refusal = rows.commitRun(this.run, this.fence, all)
        if (refusal) throw refusal
      },
    }
  }

  #batchOf(given: readonly RunWrite[]): Batch {
    const sessions: Session[] = []
    const writes: RunRowWrite[] = []
    const entries: EntryName[] = []
    for (const write of given) {
      if (write.kind === 'put') {
        sessions.push(write.session)
      } else if (write.kind === 'update') {
        writes.push({ kind: 'update', change: this.#changeOf(write.change) })
      } else if (write.kind === 'intend') {
        const { key, occurrence, kind } = write.entry
        checkName(kind, 'The kind of an effect')
        entries.push(entryName(this.run, write.entry))
        const { text: request, blobs: payloads, keeps } = this.#encoded(write.entry.request, 'request')
        writes.push({ kind: 'intend', entry: { key, occurrence, kind, request }, payloads, keeps })
      } else {
        const { key, occurrence } = write
        entries.push(entryName(this.run, write))
        const { text: outcome, blobs: payloads, keeps } = this.#encoded(write.outcome, 'outcome')
        writes.push({ kind: 'conclude', key, occurrence, outcome, payloads, keeps })
      }
    }
    return { opening: this.#opening, sessions, writes, entries }
  }

  #changeOf(change: RunChange): RunChange {
    checkStatus(change.status)
    if (change.output !== undefined) checkName(change.output, 'The output of a run')
    if (change.data === undefined) return change
    return { ...change, data: this.#parts.redactor.json(toJson(change.data, 'data')) as JsonObject }
  }

  /** As it is written. That is done before this returns: nobody can change the value meanwhile, so it needs no copy. */
  #encoded(value: unknown, name: string): Encoded {
    const plain = isJson(value) ? value : toJson(value, name)
    const text = JSON.stringify(plain)
    const clean = this.#parts.redactor.json(plain, text)
    return clean === plain ? encodeWritten(plain, text) : encode(clean)
  }
}

const none: readonly never[] = []

function ignore(): void {}

/** What is left to do when sessions are kept. */
function committed(keepings: readonly Keeping[]): Promise<void> | undefined {
  let left: Promise<void> | undefined
  for (const keeping of keepings) {
    const more = keeping.committed()
    if (more) left = left ? Promise.all([left, more]).then(ignore) : more
  }
  return left
}
