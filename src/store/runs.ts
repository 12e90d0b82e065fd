import { RathError, show } from '../base/errors.ts'
import { isJson, type Json, type JsonObject, toJson } from '../base/json.ts'
import type { Committer, Operation } from './commit.ts'
import type { EntryName, EntryRow, Rows, StoreDriver } from './driver.ts'
import { decodeAll, type Encoded, encode, encodeWritten } from './encode.ts'
import { checkLimit } from './page.ts'
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
  missing,
  newRow,
  unknownRun,
} from './run-decisions.ts'
import type { Keeping, Sessions } from './sessions.ts'
import type {
  JournalEntry,
  NewEntry,
  NewRun,
  RunChange,
  RunRow,
  RunStatus,
  RunStore,
  RunWrite,
} from './spec.ts'

/** Runs in a store. The fence is checked in the transaction that writes, so an owner that was replaced writes nothing. */
export class Runs implements RunStore {
  readonly #driver: StoreDriver
  readonly #committer: Committer
  readonly #redactor: Redactor
  readonly #sessions: Sessions

  constructor(driver: StoreDriver, committer: Committer, redactor: Redactor, sessions: Sessions) {
    this.#driver = driver
    this.#committer = committer
    this.#redactor = redactor
    this.#sessions = sessions
  }

  write(id: string, fence: number, writes: readonly RunWrite[]): Promise<void> | undefined {
    if (!this.#driver.neverWaits) return this.#writeEach(id, fence, writes)
    const operations: (Operation<unknown> | Keeping)[] = []
    for (const write of writes) {
      const operation = this.#operation(id, fence, write)
      // A session of which nothing is known in this process: what the store has of it must be looked up first.
      if (operation === undefined) return this.#writeEach(id, fence, writes)
      operations.push(operation)
    }
    /** Places of sessions that count on chunks which are gone: collected, although this process remembers them as stored. */
    const lacking = new Set<number>()
    let refusal: { readonly error: unknown } | undefined
    this.#committer.commitNow(operations, (error, i) => {
      if (error instanceof RathError && error.code === 'chunk-missing') lacking.add(i)
      else refusal ??= { error }
    })
    if (refusal) throw refusal.error
    let waits = this.#committer.pause()
    for (let i = 0; i < operations.length; i++) {
      const left = lacking.has(i)
        ? this.#writeEach(id, fence, [writes[i] as RunWrite])
        : (operations[i] as Partial<Keeping>).committed?.()
      if (left) waits = waits ? Promise.all([waits, left]).then(() => {}) : left
    }
    return waits
  }

  /** All are asked for in one turn, and so share a transaction. */
  async #writeEach(id: string, fence: number, writes: readonly RunWrite[]): Promise<void> {
    await Promise.all(writes.map(write => this.#writeOne(id, fence, write)))
  }

  async #writeOne(id: string, fence: number, write: RunWrite): Promise<unknown> {
    if (write.kind === 'put') return this.#sessions.put(write.session)
    return this.#committer.submit(this.#operation(id, fence, write) as Operation<unknown>)
  }

  #operation(id: string, fence: number, write: RunWrite): Operation<unknown> | Keeping | undefined {
    switch (write.kind) {
      case 'put':
        return this.#sessions.keeping(write.session)
      case 'create':
        return this.#creation({ id, ...write.run })
      case 'claim':
        return this.#claiming(id, write.owner, write.leaseMs)
      case 'update':
        return this.#updating(id, fence, write.change)
      case 'intend': {
        const name = entryName(id, write.entry)
        return this.#intending(name, fence, write.entry.kind, this.#encoded(write.entry.request, 'request'))
      }
      case 'conclude': {
        const outcome = this.#encoded(write.outcome, 'outcome')
        return concluding(entryName(id, write), outcome, rows => void heldRun(rows, id, fence))
      }
    }
  }

  async create(run: NewRun): Promise<RunRow> {
    return this.#committer.submit(this.#creation(run))
  }

  #creation({ id, input, output, data }: NewRun): Operation<RunRow> {
    checkName(id, 'A run id')
    if (input !== undefined) checkName(input, 'The input of a run')
    if (output !== undefined) checkName(output, 'The output of a run')
    const clean = this.#clean(data ?? {}, 'data') as JsonObject
    return changing(id, rows => {
      if (rows.run(id))
        throw new RathError('run-exists', `There is already a run ${show(id)}; give each run its own id.`)
      const now = Date.now()
      return {
        id,
        status: 'running',
        owner: null,
        fence: 0,
        leaseUntil: 0,
        input: input ?? null,
        output: output ?? null,
        data: clean,
        created: now,
        updated: now,
      }
    })
  }

  async get(id: string): Promise<RunRow> {
    checkName(id, 'A run id')
    const row = await this.#driver.runRow(id)
    if (row === undefined) throw unknownRun(id)
    return row
  }

  list(filter: { readonly status?: RunStatus; readonly limit?: number } = {}): Promise<readonly RunRow[]> {
    checkStatus(filter.status)
    return this.#driver.runRows(filter.status, checkLimit(filter.limit, 50))
  }

  async claim(
    id: string,
    owner: string,
    leaseMs: number,
    options: { readonly instead?: string } = {},
  ): Promise<RunRow> {
    return this.#committer.submit(this.#claiming(id, owner, leaseMs, options.instead))
  }

  #claiming(id: string, owner: string, leaseMs: number, instead?: string): Operation<RunRow> {
    checkName(owner, 'An owner')
    checkLease(leaseMs)
    return changing(id, rows => {
      const run = rows.run(id) ?? missing(id)
      const now = Date.now()
      const isTaken = run.owner !== null && run.owner !== owner && run.owner !== instead
      if (isTaken && run.leaseUntil > now) {
        throw new RathError(
          'run-owned',
          `Run ${id} is driven by ${run.owner} for another ${run.leaseUntil - now} ms; wait until its lease ends.`,
          { data: { run: id, owner: run.owner, leaseUntil: run.leaseUntil } },
        )
      }
      return { ...run, owner, fence: run.fence + 1, leaseUntil: now + leaseMs, updated: now }
    })
  }

  async renew(id: string, fence: number, leaseMs: number): Promise<RunRow> {
    checkLease(leaseMs)
    return this.#committer.submit(
      changing(id, rows => {
        const now = Date.now()
        return { ...heldRun(rows, id, fence), leaseUntil: now + leaseMs, updated: now }
      }),
    )
  }

  async update(id: string, fence: number, change: RunChange): Promise<RunRow> {
    return this.#committer.submit(this.#updating(id, fence, change))
  }

  #updating(id: string, fence: number, change: RunChange): Operation<RunRow> {
    checkStatus(change.status)
    if (change.output !== undefined) checkName(change.output, 'The output of a run')
    const data = change.data === undefined ? undefined : (this.#clean(change.data, 'data') as JsonObject)
    return changing(id, rows => {
      const run = heldRun(rows, id, fence)
      return {
        ...run,
        status: change.status ?? run.status,
        output: change.output ?? run.output,
        data: data ?? run.data,
        ...(change.release && { owner: null, leaseUntil: 0 }),
        updated: Date.now(),
      }
    })
  }

  async intend(id: string, fence: number, entry: NewEntry): Promise<JournalEntry> {
    const name = entryName(id, entry)
    const clean = this.#clean(entry.request, 'request')
    const { row, isNew } = await this.#committer.submit(
      this.#intending(name, fence, entry.kind, encode(clean)),
    )
    // What was just written needs no reading.
    if (isNew) return { ...name, kind: entry.kind, request: clean, intendedAt: row.intendedAt }
    return this.#read(row)
  }

  #intending(
    name: EntryName,
    fence: number,
    kind: string,
    request: Encoded,
  ): Operation<{ row: EntryRow; isNew: boolean }> {
    checkName(kind, 'The kind of an effect')
    return {
      runs: [name.run],
      entries: [name],
      decide: rows => {
        heldRun(rows, name.run, fence)
        const existing = rows.entry(name)
        if (existing) return { row: existing, isNew: false }
        const row = newRow(name, kind, request)
        addBlobs(rows, request)
        rows.setEntry(row)
        return { row, isNew: true }
      },
    }
  }

  conclude(id: string, fence: number, key: string, occurrence: number, outcome: Json): Promise<JournalEntry> {
    return this.#conclude(id, key, occurrence, outcome, rows => void heldRun(rows, id, fence))
  }

  decide(id: string, key: string, occurrence: number, outcome: Json): Promise<JournalEntry> {
    return this.#conclude(id, key, occurrence, outcome, (rows, entry) => {
      if (!rows.run(id)) missing(id)
      if (entry === undefined || entry.kind === 'approval') return
      throw new RathError(
        'journal-conflict',
        `The entry ${show(key)} of run ${id} is of kind ${entry.kind}; only an approval is decided.`,
      )
    })
  }

  async #conclude(
    id: string,
    key: string,
    occurrence: number,
    outcome: Json,
    check: (rows: Rows, entry: EntryRow | undefined) => void,
  ): Promise<JournalEntry> {
    const name = entryName(id, { key, occurrence })
    const clean = this.#clean(outcome, 'outcome')
    return this.#read(await this.#committer.submit(concluding(name, encode(clean), check)), clean)
  }

  async entry(id: string, key: string, occurrence: number): Promise<JournalEntry | undefined> {
    entryName(id, { key, occurrence })
    const row = await this.#driver.entryRow(id, key, occurrence)
    return row && this.#read(row)
  }

  async journal(id: string): Promise<readonly JournalEntry[]> {
    await this.get(id)
    const rows = await this.#driver.entryRows(id)
    return Promise.all(rows.map(row => this.#read(row)))
  }

  #clean(value: unknown, name: string): Json {
    return this.#redactor.json(toJson(value, name))
  }

  /** As it is written. That is done before this returns: nobody can change the value meanwhile, so it needs no copy. */
  #encoded(value: unknown, name: string): Encoded {
    const plain = isJson(value) ? value : toJson(value, name)
    const text = JSON.stringify(plain)
    const clean = this.#redactor.json(plain, text)
    return clean === plain ? encodeWritten(plain, text) : encode(clean)
  }

  /** `written` is the outcome where it need not be read. */
  async #read(row: EntryRow, written?: Json): Promise<JournalEntry> {
    const texts = row.outcome === null || written !== undefined ? [row.request] : [row.request, row.outcome]
    const [request, outcome = written] = await decodeAll(texts, ids => this.#driver.blobs(ids))
    const { run, key, occurrence, kind, intendedAt, concludedAt } = row
    return {
      run,
      key,
      occurrence,
      kind,
      request: request as Json,
      intendedAt,
      ...(concludedAt !== null && { concludedAt, outcome: outcome as Json }),
    }
  }
}
