import { RathError, show } from '../base/errors.ts'
import { type Json, type JsonObject, toJson } from '../base/json.ts'
import type { Committer, Operation } from './commit.ts'
import type { EntryRow, StoreDriver } from './driver.ts'
import { decodeAll, encode } from './encode.ts'
import type { Gate } from './gate.ts'
import { checkLimit } from './page.ts'
import type { Redactor } from './redact.ts'
import {
  changing,
  checkLease,
  checkName,
  checkStatus,
  concluding,
  entryName,
  missing,
  unknownRun,
} from './run-decisions.ts'
import { Log } from './run-log.ts'
import type { Sessions } from './sessions.ts'
import type { JournalEntry, NewRun, RunLog, RunRow, RunStatus, RunStore } from './spec.ts'

/** Runs in a store. Whoever claims one is given its log, and only logs change what a run did. */
export class Runs implements RunStore {
  readonly #driver: StoreDriver
  readonly #committer: Committer
  readonly #redactor: Redactor
  readonly #sessions: Sessions
  readonly #gate: Gate

  constructor(driver: StoreDriver, committer: Committer, redactor: Redactor, sessions: Sessions, gate: Gate) {
    this.#driver = driver
    this.#committer = committer
    this.#redactor = redactor
    this.#sessions = sessions
    this.#gate = gate
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

  async decide(id: string, key: string, occurrence: number, outcome: Json): Promise<JournalEntry> {
    const name = entryName(id, { key, occurrence })
    const clean = this.#clean(outcome, 'outcome')
    const decided = concluding(name, encode(clean), (rows, entry) => {
      if (!rows.run(id)) missing(id)
      if (entry === undefined || entry.kind === 'approval') return
      throw new RathError(
        'journal-conflict',
        `The entry ${show(key)} of run ${id} is of kind ${entry.kind}; only an approval is decided.`,
      )
    })
    return this.#read(await this.#committer.submit(decided), clean)
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

function claiming(id: string, owner: string, leaseMs: number, instead?: string): Operation<RunRow> {
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
