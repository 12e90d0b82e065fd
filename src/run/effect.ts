import { clock } from '../base/clock.ts'
import { RathError, toRathError } from '../base/errors.ts'
import { asJson, type Json } from '../base/json.ts'
import { stopsRun } from '../base/run-stop.ts'
import type { Session } from '../session/session.ts'
import type { JournalEntry, NewEntry } from '../store/spec.ts'
import {
  type Asked,
  type AskedRecord,
  askedIn,
  askerOf,
  cleaned,
  definition,
  type EntryName,
  type Failure,
  inFirstRule,
  insideOf,
  type KeyRule,
  keyOf,
  nextKey,
  type Outcome,
  outcomeFrom,
  outcomeIn,
  recordOf,
  type ValueOf,
} from './entry.ts'
import { FramePart, RunningEffect, type Scope, sawFiles, scopeIn, spendInside } from './frame.ts'
import type { Journal } from './journal.ts'
import { Claims, Lender, nameOf, type RunRecord, toolIn } from './replay/record.ts'
import type { Tracing } from './telemetry/tracing.ts'

/** What an effect is, besides who makes it. */
export interface Asking<K extends string> extends Omit<Asked<K>, 'sample' | 'by' | 'signal'> {
  /** Aborted when nobody waits for it any more; the call's by default. */
  readonly signal?: AbortSignal
  /** A rejection of its work is its outcome. Otherwise the effect was cut off, and its rule says what a later run does with it. */
  readonly keepsFailure?: boolean
  /** Its work may make effects of its own, which are done inside it: the id of the tool call, where it is one. */
  readonly nests?: string | boolean
  /** How those who watch see it. */
  trace?(tracing: Tracing, at: EntryName, work: () => Promise<Ended<K>>): Promise<Ended<K>>
}

/** What the work of an effect ends with. */
export type Ended<K extends string> = Outcome<K> & {
  /** The error itself, where it failed in this process. */
  readonly cause?: unknown
  /** It was cut off all the same: this is for whoever asked, and not for the journal. */
  readonly isCutOff?: boolean
}

export type Passed<K extends string = string> = Outcome<K> & {
  /** What people call its entry. */
  readonly id?: string | undefined
  /** It was not performed now. */
  readonly isRecorded: boolean
  readonly cause?: unknown
}

/** Who makes effects: the call of a workflow, as code deep inside it knows it. `RunContext` is all of it. */
export interface Maker {
  readonly by: string
  /** What it was called with, once that is there. */
  readonly input: Session | undefined
  readonly scope: Scope
  readonly aborted: boolean
  readonly run: { readonly id: string; readonly door: Door; enter(): void; leave(): boolean }
  readonly runtime: {
    readonly places: { leave(run: string): Promise<void> }
    readonly tracing?: Tracing | undefined
  }
}

/** The call that the running code is inside of, if it is inside one. */
export const callHere = new FramePart<Maker>()

/**
 * Everything that touches the world is a call of this: a model's answer, a tool, a memory, a merge, a person's decision, the end of a budget,
 * a user's own effect. Gives the outcome on record, or does the work and puts what it ends with on record. The run lasts until it has ended,
 * also when nobody waits for it.
 */
export async function effect<K extends string>(
  maker: Maker,
  asking: Asking<K>,
  work: (at: Under) => Promise<Ended<K>>,
): Promise<Passed<K>> {
  const { run, runtime } = maker
  const { door } = run
  run.enter()
  const left = asking.rule === 'external' ? door.external() : undefined
  try {
    const begun = door.begin(askedBy(maker, asking))
    const at = begun instanceof Promise ? await begun : begun
    let passed = at.passed as Passed<K> | undefined
    if (passed === undefined) {
      const ended = await perform(maker, asking, at, work)
      if (ended.isCutOff) return { ...ended, isRecorded: false }
      const concluded = at.conclude(ended as Ended<string>)
      passed = (concluded instanceof Promise ? await concluded : concluded) as Passed<K>
    }
    if (passed.sees) sawFiles()
    if (passed.isRecorded) {
      if (asking.trace) runtime.tracing?.recorded()
      spendInside(passed.inside?.usage)
    }
    return passed
  } finally {
    left?.()
    if (run.leave()) await runtime.places.leave(run.id)
  }
}

/** The recorded outcome of what the clock decided and code cannot find out again. */
export function recall<K extends string>(maker: Maker, asking: Asking<K>): Outcome<K> | undefined {
  return maker.run.door.recall(askedBy(maker, asking)) as Outcome<K> | undefined
}

/** What an effect gave. Throws its failure. */
export function valueIn<K extends string>({ value, error, cause }: Passed<K>): ValueOf<K> {
  if (error !== undefined) throw cause ?? errorOf(error as Failure)
  return value as ValueOf<K>
}

/** Something that failed, as the journal keeps it, and back. */
export function failureOf(thrown: unknown): Failure {
  const error = toRathError(thrown)
  const { code, message, data } = error
  return error === thrown ? { code, message, data } : { code, message }
}

export function errorOf({ code, message, data }: Failure): RathError {
  return new RathError(code, message, data ? { data } : {})
}

function askedBy<K extends string>(maker: Maker, asking: Asking<K>): Asked {
  const asked: Asked<K> = {
    ...asking,
    sample: scopeIn(maker).sample,
    by: maker.by,
    signal: asking.signal ?? maker,
  }
  return asked as Asked
}

function perform<K extends string>(
  maker: Maker,
  asking: Asking<K>,
  at: Under,
  work: (at: Under) => Promise<Ended<K>>,
): Promise<Ended<K>> {
  const { tracing } = maker.runtime
  const { nests, trace, keepsFailure } = asking
  const attempt = () => {
    const working = nests ? nested(maker, nests === true ? undefined : nests, at, work) : work(at)
    return keepsFailure ? working.catch((error): Ended<K> => failed(error, maker)) : working
  }
  return tracing && trace ? trace(tracing, at, attempt) : attempt()
}

function failed<K extends string>(error: unknown, { aborted }: Maker): Ended<K> {
  if (aborted || stopsRun(error)) throw error
  return { error: failureOf(error), cause: error } as Ended<K>
}

/** Runs work whose own effects are counted apart from all others, and adds what was done in it. */
async function nested<K extends string>(
  maker: Maker,
  callId: string | undefined,
  at: Under,
  work: (at: Under) => Promise<Ended<K>>,
): Promise<Ended<K>> {
  const running = new RunningEffect(maker, insideOf(at), callId)
  const ended = await running.run(() => work(at))
  const { inside } = running
  return inside ? { ...ended, inside } : ended
}

/** Where effects are found on record, or begun and concluded. */
export interface Door {
  /** How it makes keys. */
  readonly rule: KeyRule
  begin(asked: Asked): Begun | Promise<Begun>
  /** What is on record for whoever asks, without taking it. */
  recall(asked: Asked): Outcome | undefined
  /** Makes what a request names by digest readable again. */
  define(digest: string, value: () => Json): void
  /** An external effect begins; the function that it gives is called when that has ended. */
  external(): () => void
  /** Resolves when no external effect is under way any more: how each ended is on record then. */
  quiet(): Promise<void>
}

/** An effect that is about to be performed. */
export interface Under extends EntryName {
  /** Set when it was begun before and cut off. */
  readonly begun?: JournalEntry | undefined
}

export interface Begun extends Under {
  /** The outcome on record: nothing is to be done. */
  readonly passed?: Passed
  /** Puts what the work ended with on record, and gives what stands there. */
  conclude(ended: Ended<string>): Passed | Promise<Passed>
}

export interface LiveDoorOptions {
  /** Opens the journal of the run, once. Throws when the run is over. */
  open(): Journal | Promise<Journal>
  /** What this run did before. */
  readonly record?: RunRecord | undefined
  /** Whether failures on record are tried again. */
  readonly retries?: boolean | undefined
  /** A run to borrow outcomes from. */
  readonly lender?: (() => Promise<RunRecord>) | undefined
  /** Effects by name that a person wants performed, whatever is on record. */
  readonly allowed?: ReadonlySet<string> | undefined
  /** Called with an effect that may have been done under another name; returns what stops the run. */
  onDoubt?(doubt: Doubt): RathError
}

/** An external effect that is not on record, while a record has outcomes of its kind that nobody has asked for. */
export interface Doubt extends EntryName {
  readonly kind: string
  readonly asked: AskedRecord
  /** What may be it. */
  readonly unclaimed: readonly JournalEntry[]
}

/**
 * Milliseconds without a sign of life of a run after which what nobody has asked for counts as not asked for any more. Everything that led to it
 * is on record and comes back at once; what takes time is code between effects.
 */
const quietMs = 2_000

/** The door of a run that works: first this run's own record, then that of the run it borrows from, then the world. */
export class LiveDoor implements Door {
  readonly rule: KeyRule
  readonly #options: LiveDoorOptions
  /** Of a run that may find what it asks for. */
  readonly #claims: Claims | undefined
  /** Of any other, by key: how often it was asked for. */
  readonly #counts = new Map<string, number>()
  #defined: Set<string> | undefined
  #external = 0
  #onQuiet: (() => void)[] | undefined
  #journal: Journal | undefined
  #lender: Promise<Lender> | undefined
  /** Counts whatever passes, so that somebody who waits knows whether the run still moves. */
  #moves = 0

  constructor(options: LiveDoorOptions) {
    this.#options = options
    this.rule = options.record?.rule ?? 2
    if (options.record || options.lender) this.#claims = new Claims(options.record)
  }

  begin(given: Asked): Begun | Promise<Begun> {
    this.#moves++
    const opened = this.#options.open()
    if (opened instanceof Promise) return opened.then(journal => this.#begin(given, journal))
    return this.#begin(given, opened)
  }

  #begin(given: Asked, journal: Journal): Begun | Promise<Begun> {
    this.#journal = journal
    const asked = cleaned(this.rule === 1 ? inFirstRule(given) : given, journal.store)
    const key = keyOf(asked, this.rule)
    const claims = this.#claims
    if (claims) return this.#find(journal, claims, given, asked, key)
    const occurrence = this.#counts.get(key) ?? 0
    this.#counts.set(key, occurrence + 1)
    return this.#intend(journal, asked, { key, occurrence })
  }

  /** On this run's record, or on that of the run it borrows from, or not yet. */
  async #find(journal: Journal, claims: Claims, given: Asked, asked: Asked, key: string): Promise<Begun> {
    const { record, retries } = this.#options
    const { occurrence, moved } = claims.take(key, askerOf(asked))
    if (moved && record) journal.note(record.claim(moved, askerOf(asked)))
    const at = { key, occurrence }
    const known = record?.find(key, occurrence)
    const outcome = outcomeIn(known)
    const lending = asked.own ? undefined : this.#lending()
    const lender = lending && (await lending)
    // What this run has on record counts as lent too: the next of its kind is another one.
    const loan = lender?.take(given, at, this.rule, journal.store)
    if (outcome && !(outcome.error !== undefined && retries)) {
      claims.settle(at)
      loan?.settle()
      return served(at, { ...servedFrom(known, outcome), id: known && askedIn(known).id })
    }
    const lent = known ? undefined : await loan?.outcome(asked)
    if (lent) {
      loan?.settle()
      const written = recordOf(asked, at, this.rule, lender?.record.run)
      const entry = { ...at, kind: asked.kind, request: asJson(written) }
      journal.note(entry)
      // It is on this run's record from now on, whenever it happened.
      const taken = { ...lent, at: Date.now() }
      journal.conclude(entry, asJson(taken))
      return served(at, { ...taken, isRecorded: true, id: written.id })
    }
    if (record && !known && asked.rule === 'external') await this.#checkUnclaimed(claims, asked, at)
    return this.#intend(journal, asked, at, known)
  }

  /** Writes down that it is about to be done. */
  #intend(journal: Journal, asked: Asked, at: EntryName, known?: JournalEntry): Begun | Promise<Begun> {
    const isRetry = outcomeIn(known) !== undefined
    const written = recordOf(asked, at, this.rule)
    const begun = new LiveEffect(
      this,
      journal,
      asked,
      at,
      {
        key: known ? (isRetry ? nextKey(known.key) : known.key) : at.key,
        occurrence: at.occurrence,
        kind: asked.kind,
        request: asJson(written),
      },
      written.id,
      isRetry ? undefined : known,
    )
    // Also of what is pure: with the intent, the answer that asked for it becomes durable.
    const intending = asked.light ? undefined : journal.intend(begun.entry)
    return intending ? intending.then(() => begun.start()) : begun.start()
  }

  /** Something of the run has ended. */
  moved(): void {
    this.#moves++
  }

  recall(asked: Asked): Outcome | undefined {
    const outcome = this.#claims?.recall(asked)
    return outcome?.error !== undefined && this.#options.retries ? undefined : outcome
  }

  define(digest: string, value: () => Json): void {
    this.#defined ??= new Set()
    if (this.#defined.has(digest)) return
    this.#defined.add(digest)
    const write = (journal: Journal) =>
      journal.note({ key: digest, occurrence: 0, kind: definition, request: value() })
    try {
      const opened = this.#journal ?? this.#options.open()
      if (opened instanceof Promise) opened.then(write, () => {})
      else write(opened)
    } catch {
      // A run that is over: whatever is asked next says so.
    }
  }

  external(): () => void {
    this.#external++
    return () => {
      this.#external--
      if (this.#external === 0) for (const resolve of this.#onQuiet?.splice(0) ?? []) resolve()
    }
  }

  async quiet(): Promise<void> {
    this.#onQuiet ??= []
    const waiting = this.#onQuiet
    while (this.#external > 0) await new Promise<void>(resolve => waiting.push(resolve))
  }

  #lending(): Promise<Lender> | undefined {
    this.#lender ??= this.#options.lender?.().then(record => new Lender(record))
    return this.#lender
  }

  /**
   * The net under all that finds entries again: what is about to happen may be what is on record and nobody has asked for. It waits until that was
   * asked for after all, or the run has come to a rest without it; then a person has to look.
   */
  async #checkUnclaimed(claims: Claims, asked: Asked, at: EntryName): Promise<void> {
    const { allowed, onDoubt } = this.#options
    if (onDoubt === undefined || allowed?.has(nameOf(at))) return
    const { kind, by } = asked
    let moves = this.#moves
    let since = performance.now()
    for (;;) {
      const unclaimed = claims.unclaimed(kind, toolIn(asked.request), by)
      if (unclaimed.length === 0) return
      if (asked.signal.aborted) throw new RathError('cancelled', `${kind} of ${by} was cancelled.`)
      if (moves !== this.#moves) {
        moves = this.#moves
        since = performance.now()
      } else if (performance.now() - since >= quietMs)
        throw onDoubt({ ...at, kind, asked: recordOf(asked, at, this.rule), unclaimed })
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

/** An effect under way, with its intent on record. */
class LiveEffect implements Begun {
  readonly key: string
  readonly occurrence: number
  readonly begun: JournalEntry | undefined
  readonly entry: NewEntry
  readonly #journal: Journal
  readonly #asked: Asked
  readonly #id: string | undefined
  readonly #door: LiveDoor
  #started = 0

  constructor(
    door: LiveDoor,
    journal: Journal,
    asked: Asked,
    { key, occurrence }: EntryName,
    entry: NewEntry,
    id: string | undefined,
    begun: JournalEntry | undefined,
  ) {
    this.#door = door
    this.key = key
    this.occurrence = occurrence
    this.entry = entry
    this.begun = begun
    this.#journal = journal
    this.#asked = asked
    this.#id = id
  }

  start(): this {
    // What is begun again was begun then, and so was what it begins with.
    if (this.begun === undefined && !this.#asked.light) clock().live()
    this.#started = performance.now()
    return this
  }

  conclude(ended: Ended<string>): Passed | Promise<Passed> {
    this.#door.moved()
    const { light, anybody, urgent } = this.#asked
    const ms = Math.round((performance.now() - this.#started) * 1000) / 1000
    const outcome = outcomeOf(ended, ms, Date.now())
    const kept = this.#journal.store.clean(asJson(outcome))
    if (!light) clock().live()
    if (anybody) return this.#settle(kept)
    if (light) this.#journal.note(this.entry)
    this.#journal.conclude(this.entry, kept)
    const passed = passedOf(outcomeFrom(kept), this.#id, ended.cause)
    return urgent ? this.#journal.settled().then(() => passed) : passed
  }

  /** Somebody else may have given the outcome meanwhile. */
  async #settle(kept: Json): Promise<Passed> {
    const stands = outcomeFrom(await this.#journal.settle(this.entry, kept))
    return { ...stands, isRecorded: false, id: this.begun ? askedIn(this.begun).id : this.#id }
  }
}

/** As it is written: built at once, for there are two a round and each is looked at often. */
function outcomeOf({ value, error, inside, sees }: Ended<string>, ms: number, at: number): object {
  const ended = error === undefined ? { value, ms, at } : { error, ms, at }
  return inside || sees ? { ...ended, ...(inside && { inside }), ...(sees && { sees }) } : ended
}

function passedOf(
  { value, error, ms, at, sees, inside }: Outcome,
  id: string | undefined,
  cause: unknown,
): Passed {
  return { value, error, ms, at, sees, inside, isRecorded: false, id, cause } as Passed
}

/** One that is on record. */
export function served(at: EntryName, passed: Passed): Begun {
  return { ...at, passed, conclude: () => passed }
}

/** An outcome on record, with when it was given. */
function servedFrom(entry: JournalEntry | undefined, outcome: Outcome): Passed {
  const at = outcome.at ?? entry?.concludedAt
  clock().served(at)
  return { ...outcome, ...(at !== undefined && { at }), isRecorded: true }
}
