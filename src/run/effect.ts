import { clock } from '../base/clock.ts'
import { RathError, toRathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import {
  type Asked,
  type AskedRecord,
  type Asker,
  askedIn,
  askerOf,
  definition,
  inFirstRule,
  insideOf,
  type KeyRule,
  keyOf,
  nextKey,
  type Outcome,
  outcomeIn,
  recordOf,
} from './entry.ts'
import type { Journal } from './journal.ts'
import { Claims, nameOf, type RunRecord, toolIn } from './replay/record.ts'

/** Where everything passes that touches the world. */
export interface Door {
  /** How it makes keys. */
  readonly rule: KeyRule
  /**
   * The outcome of an effect: the recorded one, or what `perform` ends with. A rejection of `perform` has no outcome: the effect was cut
   * off, and its rule says what a later run does with it.
   */
  pass(asked: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed>
  /** The recorded outcome of what the clock decided and code cannot find out again. */
  recall(asked: Asked): Outcome | undefined
  /** Makes what a request names by digest readable again. */
  define(digest: string, value: () => Json): void
  /** Resolves when no external effect is under way any more: how each ended is on record then. */
  quiet(): Promise<void>
}

/** An effect that is about to be performed. */
export interface Place {
  readonly key: string
  readonly occurrence: number
  /** Set when it was begun before and cut off. */
  readonly begun?: JournalEntry | undefined
}

export type Passed = Outcome & {
  /** What people call its entry. */
  readonly id?: string | undefined
  /** It was not performed now. */
  readonly isRecorded: boolean
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
  /** Told of an effect that may have been done under another name; returns what stops the run. */
  onDoubt?(doubt: Doubt): RathError
}

/** An external effect that is not on record, while a record has outcomes of its kind that nobody has asked for. */
export interface Doubt {
  readonly key: string
  readonly occurrence: number
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
  readonly #claims: Claims
  readonly #defined = new Set<string>()
  readonly #external = new Set<Promise<Passed>>()
  #journal: Journal | undefined
  #lender: Promise<Lender> | undefined
  /** Counts whatever passes, so that somebody who waits knows whether the run still moves. */
  #moves = 0

  constructor(options: LiveDoorOptions) {
    this.#options = options
    this.rule = options.record?.rule ?? 2
    this.#claims = new Claims(options.record)
  }

  pass(given: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed> {
    const passing = this.#pass(given, perform)
    if (given.rule !== 'external') return passing
    this.#external.add(passing)
    const gone = () => void this.#external.delete(passing)
    passing.then(gone, gone)
    return passing
  }

  async quiet(): Promise<void> {
    while (this.#external.size > 0) await Promise.allSettled(this.#external)
  }

  async #pass(given: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed> {
    this.#moves++
    const opened = this.#options.open()
    const journal = opened instanceof Promise ? await opened : opened
    this.#journal = journal
    const asked = cleaned(this.rule === 1 ? inFirstRule(given) : given, journal.store)
    const key = keyOf(asked, this.rule)
    const { record } = this.#options
    const { occurrence, moved } = this.#claims.take(key, askerOf(asked))
    if (moved && record) journal.note(record.claim(moved, askerOf(asked)))
    const known = record?.find(key, occurrence)
    const outcome = outcomeIn(known)
    const lending = asked.own ? undefined : this.#lending()
    const lender = lending && (await lending)
    // What this run has on record counts as lent too: the next of its kind is another one.
    const loan = lender?.take(given, key, occurrence, this.rule, journal.store)
    if (outcome && !(outcome.error !== undefined && this.#options.retries)) {
      this.#claims.settle({ key, occurrence })
      loan?.settle()
      return { ...servedFrom(known, outcome), id: known && askedIn(known).id }
    }
    const lent = known ? undefined : await loan?.outcome(asked)
    const at = { key, occurrence }
    const written = recordOf(asked, at, this.rule, lent && lender?.record.run)
    const { id } = written
    const entry = {
      key: known ? (outcome ? nextKey(known.key) : known.key) : key,
      occurrence,
      kind: asked.kind,
      request: written as unknown as Json,
    }
    if (lent) {
      loan?.settle()
      journal.note(entry)
      // It is on this run's record from now on, whenever it happened.
      const taken = { ...lent, at: Date.now() }
      journal.conclude(entry, taken as unknown as Json)
      return { ...taken, isRecorded: true, id }
    }
    if (record && !known && asked.rule === 'external') await this.#checkUnclaimed(asked, entry)
    const intending = asked.light ? undefined : journal.intend(entry)
    if (intending) await intending
    // What is begun again was begun then, and so was what it begins with.
    if ((!known || outcome) && !asked.light) clock().live()
    const started = performance.now()
    const ended = await perform({ ...at, begun: outcome ? undefined : known })
    this.#moves++
    const ms = Math.round((performance.now() - started) * 1000) / 1000
    const kept = journal.store.clean({
      ...ended,
      ms,
      at: Date.now(),
    } as unknown as Json) as unknown as Outcome
    if (!asked.light) clock().live()
    if (asked.anybody) {
      const stands = (await journal.settle(entry, kept as unknown as Json)) as unknown as Outcome
      return { ...stands, isRecorded: false, id: known ? askedIn(known).id : id }
    }
    if (asked.light) journal.note(entry)
    journal.conclude(entry, kept as unknown as Json)
    if (asked.urgent) await journal.settled()
    return { ...kept, isRecorded: false, id }
  }

  recall(asked: Asked): Outcome | undefined {
    const { record } = this.#options
    if (record === undefined) return undefined
    const outcome = recalled(asked, record, this.#claims)
    return outcome?.error !== undefined && this.#options.retries ? undefined : outcome
  }

  define(digest: string, value: () => Json): void {
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

  #lending(): Promise<Lender> | undefined {
    this.#lender ??= this.#options.lender?.().then(record => new Lender(record))
    return this.#lender
  }

  /**
   * The net under all that finds entries again: what is about to happen may be what is on record and nobody has asked for. It waits until that was
   * asked for after all, or the run has come to a rest without it; then a person has to look.
   */
  async #checkUnclaimed(asked: Asked, { key, occurrence, kind, request }: NewDoubt): Promise<void> {
    const { allowed, onDoubt } = this.#options
    if (onDoubt === undefined || allowed?.has(nameOf({ key, occurrence }))) return
    const find = () => this.#claims.unclaimed(kind, toolIn(asked.request), asked.by)
    let moves = this.#moves
    let since = performance.now()
    for (;;) {
      const unclaimed = find()
      if (unclaimed.length === 0) return
      if (asked.isCancelled?.()) throw new RathError('cancelled', `${kind} of ${asked.by} was cancelled.`)
      if (moves !== this.#moves) {
        moves = this.#moves
        since = performance.now()
      } else if (performance.now() - since >= quietMs)
        throw onDoubt({ key, occurrence, kind, asked: request as unknown as AskedRecord, unclaimed })
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

type NewDoubt = Pick<JournalEntry, 'key' | 'occurrence' | 'kind' | 'request'>

/** The run that another one borrows from. */
class Lender {
  readonly record: RunRecord
  readonly #claims: Claims
  /** What is done inside an effect here, and inside which one it was done there. */
  readonly #inside = new Map<string, string>()

  constructor(record: RunRecord) {
    this.record = record
    this.#claims = new Claims(record, true)
  }

  /** Takes the entry that answers to an effect of the run that borrows. */
  take(given: Asked, key: string, occurrence: number, rule: KeyRule, store: Store): Loan {
    const { record } = this
    const asked = record.rule === 1 ? cleaned(inFirstRule(given), store) : given
    const there = record.rule === rule ? key : keyOf(cleaned(asked, store), record.rule)
    const claim = this.#claims.take(there, this.#askerThere(asked))
    const entry = record.find(there, claim.occurrence)
    this.#inside.set(insideOf({ key, occurrence }), insideOf({ key: there, occurrence: claim.occurrence }))
    return {
      settle: () => entry && this.#claims.settle(entry),
      outcome: async asking => {
        const outcome = outcomeIn(entry)
        // Only what went well is borrowed.
        if (outcome === undefined || outcome.error !== undefined) return undefined
        return asking.borrow ? asking.borrow(outcome, record) : outcome
      },
    }
  }

  #askerThere(asked: Asked): Asker {
    const asker = askerOf(asked)
    return { ...asker, inside: this.#inside.get(asker.inside) ?? asker.inside }
  }
}

interface Loan {
  /** It was used, or what answers to it here was. */
  settle(): void
  /** What may be used of it. */
  outcome(asked: Asked): Promise<Outcome | undefined>
}

/** An outcome on record, with when it was given. */
export function servedFrom(entry: JournalEntry | undefined, outcome: Outcome): Passed {
  const at = outcome.at ?? entry?.concludedAt
  clock().served(at)
  return { ...outcome, ...(at !== undefined && { at }), isRecorded: true }
}

/** What is asked, as it may be written: a resumed run has no more than that. */
export function cleaned(asked: Asked, store: Store): Asked {
  const session = store.clean(asked.session)
  const request = store.clean(asked.request)
  if (request !== asked.request) return { ...asked, session, request, text: undefined }
  return session === asked.session ? asked : { ...asked, session }
}

/** What a record has for whoever asks: with the end of somebody else's work nothing is said about theirs. */
export function recalled(asked: Asked, record: RunRecord, claims: Claims): Outcome | undefined {
  const key = keyOf(asked, record.rule)
  const occurrence = claims.own(key, askerOf(asked))
  return occurrence === undefined ? undefined : outcomeIn(record.find(key, occurrence))
}

/** Something that failed, as the journal keeps it, and back. */
export function failureOf(thrown: unknown): Json {
  const error = toRathError(thrown)
  const { code, message, data } = error
  return error === thrown ? { code, message, data } : { code, message }
}

export function errorOf(failure: Json): RathError {
  const { code, message, data } = failure as unknown as Pick<RathError, 'code' | 'message' | 'data'>
  return new RathError(code, message, data ? { data } : {})
}
