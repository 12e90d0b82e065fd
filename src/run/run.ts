import type { Digest } from '../base/digest.ts'
import { RathError, toRathError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { asJson, canonicalJson, type Json, type JsonObject } from '../base/json.ts'
import { version } from '../base/version.ts'
import type { Model, ModelAnswer } from '../model/spec.ts'
import type { Session } from '../session/session.ts'
import type { RunStatus, Store } from '../store/spec.ts'
import type { ToolEvidence } from '../tool/tool-record.ts'
import { keptDoubt, needsReview, Reviews } from './approve/review.ts'
import { type Door, type Doubt, LiveDoor } from './effect.ts'
import { answerIn, askedIn, isInside } from './entry.ts'
import { Journal, usualLease } from './journal.ts'
import type { RunRecord } from './replay/record.ts'
import {
  filesAfterTurn,
  type LentFiles,
  lentFiles,
  type TurnName,
  wasCutOff,
} from './replay/recorded-files.ts'

/** How a run is begun that is not simply a new one; see `runtime.run`, `resume` and `replay`. */
export interface RunSetup {
  readonly id?: string
  /** Facts for its row; of a run that exists, those that are on it. */
  readonly data?: JsonObject
  /** Drives a run that exists. */
  readonly journal?: Journal
  readonly record?: RunRecord
  readonly retries?: boolean
  readonly lender?: () => Promise<RunRecord>
  /** Effects by name that a person wants performed, whatever is on record. */
  readonly allowed?: ReadonlySet<string>
  /** Takes the place of the door to the world. */
  readonly door?: Door
}

/** The option through which a runtime begins a run. */
export const runSetup = Symbol('openrath.run')

export interface RunFacts {
  /** What is being run. */
  readonly workflow: string
  /** What its row keeps of the options that it is begun with. */
  limits(): JsonObject
  readonly lease: number | undefined
  /** Whether the store was asked for before. */
  isOpen(): boolean
  store(): Promise<Store>
  /** The first effect is about to happen. */
  begin(input: Session): void
  cancel(reason: unknown): void
}

/** A question that nobody has answered yet, for whoever may. */
export interface OpenApproval {
  readonly approval: string
  readonly tool: string
  readonly args: Json
  readonly question: string
  /** Of the tool's name and all of its arguments: show both whole. */
  readonly digest: string
  /** The tool is one that comes with the package, not one with its name. */
  readonly builtin?: boolean
  /** When it ends, in milliseconds since the epoch. */
  readonly until?: number
}

/** The outermost call and everything inside it. Nothing is written for one that has no effects. */
export class Run {
  readonly id: string
  readonly door: Door
  /** What the outermost call was given. */
  input: Session | undefined
  readonly #facts: RunFacts
  readonly #setup: RunSetup
  #parked: OpenApproval[] = []
  /** Answers that a resumed run took from its record, by the model that it did not ask for them. */
  #served: Map<Model, ModelAnswer[]> | undefined
  #data: JsonObject
  /** What may be on record under another name, for a person to look at. */
  readonly #doubts: Doubt[] = []
  #starting: Map<string, Promise<void>> | undefined
  #opening: Promise<Journal> | undefined
  #journal: Journal | undefined
  /** Sessions that were kept before anything was written for the run. */
  readonly #made: string[] = []
  #active = 0
  #onIdle: (() => void) | undefined
  #isOver = false
  /** Why nobody may go on. */
  #stopped: RathError | undefined

  constructor(facts: RunFacts, setup: RunSetup = {}) {
    this.#facts = facts
    this.#setup = setup
    this.#data = setup.data ?? {}
    this.id = setup.id ?? newId()
    this.door =
      setup.door ??
      new LiveDoor({
        open: this.#open,
        record: setup.record,
        retries: setup.retries,
        lender: setup.lender,
        allowed: setup.allowed,
        onDoubt: doubt => {
          this.#doubts.push(doubt)
          return this.#inDoubt([doubt])
        },
      })
    if (setup.journal) this.#use(setup.journal)
  }

  /** Something of it is on record: it has touched the world. */
  get hasEffects(): boolean {
    return this.#journal !== undefined
  }

  /** It goes on with outcomes on record, its own or another run's. */
  get isRecorded(): boolean {
    const { record, lender, door } = this.#setup
    return record !== undefined || lender !== undefined || door !== undefined
  }

  /** It is a replay, which touches nothing of what the run worked on. */
  get isReplayed(): boolean {
    return this.#setup.door !== undefined
  }

  /** It takes outcomes from another run, and has none of its own yet. */
  get isBorrowing(): boolean {
    const { record, lender, door } = this.#setup
    return lender !== undefined && record === undefined && door === undefined
  }

  /** Before it works in a place, the files that belong to what is on record are brought there. What is borrowed brings its own. */
  get followsFiles(): boolean {
    return this.isRecorded && !this.isBorrowing
  }

  /** Once for each placement, before anything is looked at there, in a run that borrows: with the files that the other run began with and left. */
  startOver(session: Session, start: (files: LentFiles) => Promise<void>): Promise<void> {
    const { lender } = this.#setup
    if (!this.isBorrowing || lender === undefined || session.placement === undefined) return Promise.resolve()
    const place = canonicalJson([session.placement.backend, session.placement.spec ?? null])
    this.#starting ??= new Map()
    let starting = this.#starting.get(place)
    if (starting === undefined) {
      starting = lender().then(async record => {
        const files = await lentFiles(record, await this.#facts.store())
        if (files) await start(files)
      })
      this.#starting.set(place, starting)
    }
    return starting
  }

  /** It goes on with outcomes of its own on record. */
  get isResumed(): boolean {
    return this.#setup.record !== undefined
  }

  /** The time at which it was first begun, where it goes on. */
  get begunAt(): number | undefined {
    return this.#setup.record?.entries[0]?.intendedAt
  }

  /** Whether an earlier process may have left files half-written. */
  get wasCutOff(): boolean {
    const { record } = this.#setup
    return record !== undefined && wasCutOff(record)
  }

  /** The files after those calls of a turn that are on record, where they are not `from`, which the session knows. */
  async filesAfter(turn: TurnName, from: Digest | undefined): Promise<ToolEvidence | undefined> {
    const { record } = this.#setup
    return record && filesAfterTurn(record, turn, from)
  }

  serve(model: Model, answered: { readonly answer: ModelAnswer } | undefined): void {
    if (!this.isResumed || answered === undefined) return
    this.#served ??= new Map()
    const served = this.#served.get(model)
    if (served) served.push(answered.answer)
    else this.#served.set(model, [answered.answer])
  }

  /**
   * What the run has had of a model without asking it now: what was served to it, and what was said inside effects whose outcome is on
   * record, which nobody asks for again. Of those only the name of the model is known.
   */
  servedFor(model: Model, id: string): readonly ModelAnswer[] {
    const { record } = this.#setup
    if (record === undefined) return none
    const inside = record.effects().flatMap(entry => {
      const answer = answerIn(entry)
      return answer && isInside(entry) && askedIn(entry, 'model')?.request.model === id ? [answer] : []
    })
    return [...(this.#served?.get(model) ?? []), ...inside]
  }

  enter(): void {
    this.#active++
  }

  /** Whether it was the last call that worked. */
  leave(): boolean {
    if (--this.#active > 0) return false
    this.#onIdle?.()
    return this.#active === 0
  }

  /** Keeps a session behind what the run has written so far; `settled` waits for it. Before the first effect it is waited for here. */
  keep(session: Session): Promise<unknown> | undefined {
    if (!this.#journal || this.#isOver) {
      this.#made.push(session.id)
      return this.#facts.store().then(store => store.sessions.put(session))
    }
    this.#journal.keep(session)
    return undefined
  }

  /** Everything held or written so far is durable. */
  async settled(): Promise<void> {
    await this.#journal?.settled()
  }

  park(approval: OpenApproval): RathError {
    this.#withdraw([approval])
    this.#parked.push(approval)
    return waitingError(this.id, [approval])
  }

  /** Questions whose answers nobody needs any more: those that an error of a call speaks of. */
  withdraw(error: RathError): void {
    this.#withdraw(approvalsIn(error))
  }

  #withdraw(approvals: readonly OpenApproval[]): void {
    const ids = approvals.map(({ approval }) => approval)
    this.#parked = this.#parked.filter(({ approval }) => !ids.includes(approval))
  }

  /**
   * What was thrown in it, as an error that can carry its work. One that another run threw too, such as that of a store which neither could
   * open, is copied: nobody is handed the session of somebody else.
   */
  own(thrown: unknown): RathError {
    const error = toRathError(thrown)
    const { code, message, data } = error
    const isOthers = (throwers.get(error) ?? this) !== this
    return this.#thrown(isOthers ? new RathError(code, message, { cause: error, data }) : error)
  }

  /** The error of a session that it was waiting for: it stays as it is, with the work so far on that session. */
  ownInput(thrown: unknown): RathError {
    return this.#thrown(toRathError(thrown))
  }

  #thrown(error: RathError): RathError {
    throwers.set(error, this)
    return error
  }

  stop(error: RathError): void {
    this.#stopped ??= error
    this.#facts.cancel(error)
  }

  /** The end of the outermost call. Throws instead when the run only waits. */
  async done(result: Session, isKept: boolean): Promise<void> {
    if (this.#stopped) throw this.#stopped
    if (this.#doubts.length > 0) throw this.#inDoubt(this.#doubts)
    if (this.#parked.length > 0) throw waitingError(this.id, this.#parked)
    const journal = await this.#opening
    if (journal === undefined) {
      if (!isKept && this.#facts.isOpen()) await (await this.#facts.store()).sessions.put(result)
      return
    }
    if (!isKept) journal.keep(result)
    // A call that nobody waited for still works, and ends the run when it ends.
    if (this.#active > 1) {
      await journal.settled()
      this.#onIdle = () => void this.#close(journal, 'done', result).catch(() => {})
    } else await this.#close(journal, 'done', result)
  }

  /** The same for a failure; gives the error to throw. */
  async failed(error: RathError): Promise<RathError> {
    const isWaiting =
      (this.#parked.length > 0 && error.code === 'run-waiting') ||
      (this.#doubts.length > 0 && error.code === 'needs-review')
    // What was not asked about goes on to its end. After any other failure everything is stopped, but an external effect that is under way
    // may happen all the same: how it ends is on record before anybody is asked to look, or resumes.
    if (isWaiting) await this.#idle()
    else {
      this.#facts.cancel(error)
      await this.door.quiet()
    }
    const told = this.#stopped ?? (isWaiting ? this.#waiting() : error)
    if (told !== error && error.session !== undefined) told.session = error.session
    const journal = await this.#opening?.catch(() => undefined)
    if (journal === undefined) return told
    const { session } = told
    if (session) journal.keep(session)
    await this.#close(journal, statusOf(told), session).catch(() => {})
    return told
  }

  readonly #open = (): Journal | Promise<Journal> => {
    if (this.#stopped) throw this.#stopped
    if (this.#isOver)
      throw new RathError('cancelled', `Run ${this.id} has ended; nothing more is done in it.`)
    if (this.#journal) return this.#journal
    this.#opening ??= this.#start()
    return this.#opening
  }

  async #start(): Promise<Journal> {
    const store = await this.#facts.store()
    this.#facts.begin(this.input as Session)
    const input = await store.sessions.put(this.input as Session)
    const { id } = this.#setup
    this.#data = {
      workflow: this.#facts.workflow,
      format: 2,
      version,
      ...this.#facts.limits(),
      ...this.#data,
    }
    const journal = await Journal.create(
      {
        id: this.id,
        input: input.id,
        data: this.#data,
        isFresh: id === undefined,
        lease: this.#facts.lease ?? usualLease,
      },
      store,
    )
    this.#use(journal)
    return journal
  }

  #use(journal: Journal): void {
    this.#journal = journal
    for (const session of this.#made) journal.made(session)
    this.#opening = Promise.resolve(journal)
    journal.onLost = error => this.stop(error)
    journal.onCancel = ({ by, reason }) =>
      this.#facts.cancel(new Error(reason ?? `${by ?? 'another process'} asked for it`))
  }

  /** What people are asked, once everything else has ended. */
  #waiting(): RathError {
    if (this.#doubts.length > 0) return this.#inDoubt(this.#doubts)
    return waitingError(this.id, this.#parked)
  }

  #inDoubt(doubts: readonly Doubt[]): RathError {
    const kept = doubts.map(keptDoubt)
    const reviews = new Reviews(this.#setup.record as RunRecord, kept)
    return needsReview(
      this.id,
      kept.map(doubt => reviews.notOnRecord(doubt)),
    )
  }

  async #close(journal: Journal, status: RunStatus, output: Session | undefined): Promise<void> {
    this.#isOver = true
    const { retries = false } = this.#setup
    // One that had failed is resumed as such, after the review too.
    const asks = {
      ...((status === 'waiting' || status === 'needs-review') && {
        asks: this.#parked.map(({ approval }) => approval),
      }),
      ...(status === 'needs-review' && {
        failed: retries,
        doubts: asJson(this.#doubts.map(keptDoubt)),
      }),
    }
    const data = Object.keys(asks).length > 0 && { data: { ...this.#data, ...asks } }
    journal.update({ status, release: true, ...data, ...(output && { output: output.id }) })
    try {
      await journal.settled()
    } finally {
      journal.stop()
    }
  }

  /** Until only the outermost call is left. */
  #idle(): Promise<void> {
    this.leave()
    if (this.#active === 0) {
      this.enter()
      return Promise.resolve()
    }
    return new Promise(resolve => {
      this.#onIdle = () => {
        this.#onIdle = undefined
        this.enter()
        resolve()
      }
    })
  }
}

const none: readonly never[] = Object.freeze([])

function statusOf({ code }: RathError): RunStatus {
  switch (code) {
    case 'cancelled':
      return 'cancelled'
    case 'run-waiting':
      return 'waiting'
    case 'needs-review':
      return 'needs-review'
    default:
      return 'failed'
  }
}

/** The run whose work so far an error carries. */
const throwers = new WeakMap<RathError, Run>()

/** What an error of a run that waits asks of people. */
export function approvalsIn({ data: { approvals } }: RathError): readonly OpenApproval[] {
  return Array.isArray(approvals) ? (approvals as unknown as OpenApproval[]) : []
}

export function waitingError(run: string, approvals: readonly OpenApproval[]): RathError {
  const asked = approvals.map(({ question, approval }) => `${question} (${approval})`).join(', ')
  return new RathError(
    'run-waiting',
    `Run ${run} waits for a person: ${asked}. Answer with runtime.decide, then go on with runtime.resume.`,
    { data: { run, approvals: asJson(approvals) } },
  )
}
