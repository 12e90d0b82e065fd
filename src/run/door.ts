import { RathError, toRathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import { type Asked, definition, keyOf, nextKey, type Outcome, outcomeIn, recordOf } from './entry.ts'
import type { Journal } from './journal.ts'
import { Occurrences } from './occurrences.ts'
import type { RunRecord } from './record.ts'

/** Where everything passes that touches the world. */
export interface Door {
  /**
   * The outcome of an effect: the recorded one, or what `perform` ends with. A rejection of `perform` has no outcome: the effect was cut
   * off, and its rule says what a later run does with it.
   */
  pass(asked: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed>
  /** The recorded outcome of what the clock decided and code cannot find out again. */
  recall(asked: Asked): Outcome | undefined
  /** Makes what a request names by digest readable again. */
  define(digest: string, value: () => Json): void
}

/** An effect that is about to be performed. */
export interface Place {
  readonly key: string
  readonly occurrence: number
  /** Set when it was begun before and cut off. */
  readonly begun?: JournalEntry | undefined
}

export type Passed = Outcome & {
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
}

/** The door of a run that works: first this run's own record, then that of the run it borrows from, then the world. */
export class LiveDoor implements Door {
  readonly #options: LiveDoorOptions
  readonly #occurrences: Occurrences
  readonly #defined = new Set<string>()
  #journal: Journal | undefined
  #lender: Promise<Lender> | undefined

  constructor(options: LiveDoorOptions) {
    this.#options = options
    this.#occurrences = new Occurrences(options.record)
  }

  async pass(given: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed> {
    const opened = this.#options.open()
    const journal = opened instanceof Promise ? await opened : opened
    this.#journal = journal
    const asked = cleaned(given, journal.store)
    const key = keyOf(asked)
    const occurrence = this.#occurrences.take(key, asked.by)
    const known = this.#options.record?.find(key, occurrence)
    const outcome = outcomeIn(known)
    const lending = asked.own ? undefined : this.#lending()
    const lender = lending && (await lending)
    // What this run has on record counts as lent too: the next of its kind is another one.
    const lentHere = lender?.occurrences.take(key, asked.by)
    if (outcome && !(outcome.error !== undefined && this.#options.retries))
      return { ...outcome, isRecorded: true }
    const lent = lender && !known ? lentBy(lender.record, key, lentHere as number, asked) : undefined
    const entry = {
      key: known ? (outcome ? nextKey(known.key) : known.key) : key,
      occurrence,
      kind: asked.kind,
      request: recordOf(asked, lent && lender?.record.run) as unknown as Json,
    }
    if (lent) {
      journal.note(entry)
      journal.conclude(entry, lent as unknown as Json)
      return { ...lent, isRecorded: true }
    }
    const intending = asked.light ? undefined : journal.intend(entry)
    if (intending) await intending
    const started = performance.now()
    const ended = await perform({ key, occurrence, begun: outcome ? undefined : known })
    const ms = Math.round((performance.now() - started) * 1000) / 1000
    const kept = journal.store.clean({ ...ended, ms } as unknown as Json) as unknown as Outcome
    if (asked.anybody) {
      const stands = (await journal.settle(entry, kept as unknown as Json)) as unknown as Outcome
      return { ...stands, isRecorded: false }
    }
    if (asked.light) journal.note(entry)
    journal.conclude(entry, kept as unknown as Json)
    if (asked.urgent) await journal.settled()
    return { ...kept, isRecorded: false }
  }

  recall(asked: Asked): Outcome | undefined {
    const { record } = this.#options
    if (record === undefined) return undefined
    const outcome = recalled(asked, record, this.#occurrences)
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
    this.#lender ??= this.#options.lender?.().then(record => ({
      record,
      occurrences: new Occurrences(record),
    }))
    return this.#lender
  }
}

interface Lender {
  readonly record: RunRecord
  readonly occurrences: Occurrences
}

/** What is asked, as it may be written: a resumed run has no more than that. */
export function cleaned(asked: Asked, store: Store): Asked {
  const session = store.clean(asked.session)
  const request = store.clean(asked.request)
  if (request !== asked.request) return { ...asked, session, request, text: undefined }
  return session === asked.session ? asked : { ...asked, session }
}

/** What a record has for whoever asks: with the end of somebody else's work nothing is said about theirs. */
export function recalled(asked: Asked, record: RunRecord, occurrences: Occurrences): Outcome | undefined {
  const key = keyOf(asked)
  const occurrence = occurrences.own(key, asked.by)
  return occurrence === undefined ? undefined : outcomeIn(record.find(key, occurrence))
}

/** Only what went well is borrowed. */
function lentBy(
  lender: RunRecord,
  key: string,
  occurrence: number,
  { mayBorrow }: Asked,
): Outcome | undefined {
  const outcome = outcomeIn(lender.find(key, occurrence))
  if (outcome === undefined || outcome.error !== undefined) return undefined
  return mayBorrow?.(outcome, lender.entries) === false ? undefined : outcome
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
