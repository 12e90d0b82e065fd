import { RathError, show } from '../base/errors.ts'
import { type Json, type JsonObject, toJson } from '../base/json.ts'
import type { Committer, Operation } from './commit.ts'
import type { EntryRow, StoreDriver } from './driver.ts'
import { decodeAll, encode } from './encode.ts'
import { Follower } from './follow.ts'
import type { Gate } from './gate.ts'
import { checkLimit } from './page.ts'
import type { Redactor } from './redact.ts'
import {
  changing,
  checkLease,
  checkName,
  checkStatus,
  entryName,
  missing,
  unknownRun,
} from './run-decisions.ts'
import { Log } from './run-log.ts'
import type { Sessions } from './sessions.ts'
import type {
  CancelRequest,
  JournalEntry,
  NewRun,
  RunFilter,
  RunLog,
  RunQueue,
  RunRow,
  RunStore,
} from './spec.ts'

/** Runs in a store. Whoever claims one is given its log, and only logs change what a run did. */
export class Runs implements RunStore {
  readonly #driver: StoreDriver
  readonly #committer: Committer
  readonly #redactor: Redactor
  readonly #sessions: Sessions
  readonly #gate: Gate
  readonly #follower: Follower<RunRow>

  constructor(driver: StoreDriver, committer: Committer, redactor: Redactor, sessions: Sessions, gate: Gate) {
    this.#driver = driver
    this.#committer = committer
    this.#redactor = redactor
    this.#sessions = sessions
    this.#gate = gate
    this.#follower = new Follower(wake => driver.watch(wake), driver.runChanges)
  }

  async create(run: NewRun): Promise<RunRow> {
    return this.#committer.submit(this.#creation(run))
  }

  async claim(
    id: string,
    owner: string,
    leaseMs: number,
    options: { readonly instead?: string } = {},
  ): Promise<RunLog> {
    const { fence } = await this.#committer.submit(claiming(id, owner, leaseMs, options.instead))
    return this.log(id, fence)
  }

  begin(run: NewRun, owner: string, leaseMs: number): RunLog {
    // The first claim of a run has fence 1.
    return this.#log(run.id, 1, [this.#creation(run), claiming(run.id, owner, leaseMs)])
  }

  log(id: string, fence: number): RunLog {
    checkName(id, 'A run id')
    return this.#log(id, fence, [])
  }

  #log(run: string, fence: number, opening: readonly Operation<unknown>[]): RunLog {
    const log = new Log(run, fence, opening, {
      driver: this.#driver,
      committer: this.#committer,
      redactor: this.#redactor,
      sessions: this.#sessions,
    })
    return this.#gate.aroundLog(log)
  }

  #creation({ id, input, output, data, queue }: NewRun): Operation<RunRow> {
    checkName(id, 'A run id')
    if (input !== undefined) checkName(input, 'The input of a run')
    if (output !== undefined) checkName(output, 'The output of a run')
    const clean = this.#clean(data ?? {}, 'data') as JsonObject
    const place = queue && checkQueue(queue)
    return changing(id, rows => {
      if (rows.run(id))
        throw new RathError('run-exists', `There is already a run ${show(id)}; give each run its own id.`)
      return {
        id,
        status: place ? 'queued' : 'running',
        owner: null,
        fence: 0,
        leaseUntil: 0,
        input: input ?? null,
        output: output ?? null,
        data: clean,
        ...(place && { queue: place }),
        created: rows.now,
        updated: rows.now,
      }
    })
  }

  async get(id: string): Promise<RunRow> {
    checkName(id, 'A run id')
    const row = await this.#driver.runRow(id)
    if (row === undefined) throw unknownRun(id)
    return row
  }

  list({ status, limit, before }: RunFilter = {}): Promise<readonly RunRow[]> {
    checkStatus(status)
    if (before !== undefined) checkName(before, 'A run id')
    return this.#driver.runRows(status, checkLimit(limit, 50), before)
  }

  async claimNext(owner: string, leaseMs: number, queues: readonly string[]): Promise<RunLog | undefined> {
    checkName(owner, 'An owner')
    checkLease(leaseMs)
    for (const queue of queues) checkName(queue, 'A queue')
    const row = await this.#driver.takeRun(owner, leaseMs, queues)
    return row && this.log(row.id, row.fence)
  }

  async cancel(id: string, request: Omit<CancelRequest, 'at'> = {}): Promise<RunRow> {
    const { by, reason } = this.#clean(request, 'request') as Omit<CancelRequest, 'at'>
    return this.#committer.submit(
      changing(id, rows => {
        const run = rows.run(id) ?? missing(id)
        if (run.cancel || hasEnded(run)) return run
        const cancel = {
          at: rows.now,
          ...(by !== undefined && { by }),
          ...(reason !== undefined && { reason }),
        }
        const isDriven = run.owner !== null && run.leaseUntil > rows.now
        const isIdle = !isDriven && (run.status === 'queued' || run.status === 'waiting')
        return { ...run, cancel, updated: rows.now, ...(isIdle && { status: 'cancelled' as const }) }
      }),
    )
  }

  subscribe(
    listener: (change: { readonly run: RunRow; readonly cursor: string }) => void,
    { run, cursor }: { readonly run?: string; readonly cursor?: string } = {},
  ): Disposable {
    return this.#follower.subscribe(({ row, cursor: at }) => listener({ run: row, cursor: at }), {
      id: run,
      cursor,
    })
  }

  close(): void {
    this.#follower.close()
  }

  async decide(id: string, key: string, occurrence: number, outcome: Json): Promise<JournalEntry> {
    const name = entryName(id, { key, occurrence })
    const { text, blobs: payloads, keeps } = encode(this.#clean(outcome, 'outcome'))
    const approved = {
      kind: 'conclude',
      key,
      occurrence,
      outcome: text,
      payloads,
      keeps,
      of: 'approval',
    } as const
    await this.#committer.submit({
      runs: [id],
      entries: [name],
      decide: rows => {
        const refusal = rows.commitRun(id, null, [approved])
        if (refusal) throw refusal
        const run = rows.run(id) ?? missing(id)
        if (run.queue && run.status === 'waiting' && run.owner === null)
          rows.setRun({ ...run, status: 'queued', updated: rows.now })
      },
    })
    return (await this.entry(id, key, occurrence)) as JournalEntry
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

  async #read(row: EntryRow): Promise<JournalEntry> {
    const texts = row.outcome === null ? [row.request] : [row.request, row.outcome]
    const [request, outcome] = await decodeAll(texts, ids => this.#driver.blobs(ids))
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

function claiming(id: string, owner: string, leaseMs: number, instead?: string): Operation<RunRow> {
  checkName(owner, 'An owner')
  checkLease(leaseMs)
  return changing(id, rows => {
    const run = rows.run(id) ?? missing(id)
    const { now } = rows
    const isTaken = run.owner !== null && run.owner !== owner && run.owner !== instead
    if (isTaken && run.leaseUntil > now) {
      throw new RathError(
        'run-owned',
        `Run ${id} is driven by ${run.owner} for another ${run.leaseUntil - now} ms; wait until its lease ends.`,
        { data: { run: id, owner: run.owner, leaseUntil: run.leaseUntil } },
      )
    }
    const status = run.status === 'queued' ? 'running' : run.status
    // Whoever goes on with a run that has ended does so in spite of an earlier request.
    const { cancel, ...rest } = run
    const asked = cancel && !hasEnded(run) ? { cancel } : {}
    return { ...rest, ...asked, status, owner, fence: run.fence + 1, leaseUntil: now + leaseMs, updated: now }
  })
}

function hasEnded({ status }: RunRow): boolean {
  return status === 'done' || status === 'failed' || status === 'cancelled'
}

/** With its defaults, so that every driver keeps the same. */
function checkQueue({ name, priority = 0, notBefore = 0 }: RunQueue): Required<RunQueue> {
  checkName(name, 'A queue')
  for (const [what, value] of Object.entries({ priority, notBefore })) {
    if (Number.isSafeInteger(value)) continue
    throw new RathError('invalid-argument', `${what} of a queued run is a whole number, not ${show(value)}.`)
  }
  return { name, priority, notBefore }
}
