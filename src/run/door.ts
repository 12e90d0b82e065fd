import { RathError, toRathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import { type Asked, definition, keyOf, nextKey, type Outcome, outcomeIn, recordOf } from './entry.ts'
import type { Journal } from './journal.ts'
import type { RunRecord } from './record.ts'

/** Where everything passes that touches the world. */
export interface Door {
  /**
   * The outcome of an effect: the recorded one, or what `perform` ends with. A rejection of `perform` has no outcome: the effect was cut
   * off, and its rule says what a later run does with it.
   */
  pass(asked: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed>
  /** In a replay, the recorded outcome of what the clock decided and code cannot find out again. */
  recall?(asked: Asked): Outcome | undefined
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
  readonly #occurrences = new Occurrences()
  readonly #defined = new Set<string>()
  #journal: Journal | undefined
  #lender: Promise<RunRecord> | undefined

  constructor(options: LiveDoorOptions) {
    this.#options = options
  }

  async pass(given: Asked, perform: (at: Place) => Promise<Outcome>): Promise<Passed> {
    const opened = this.#options.open()
    const journal = opened instanceof Promise ? await opened : opened
    this.#journal = journal
    const asked = cleaned(given, journal.store)
    const key = keyOf(asked)
    const occurrence = this.#occurrences.next(key)
    const known = this.#options.record?.find(key, occurrence)
    const outcome = outcomeIn(known)
    if (outcome && !(outcome.error !== undefined && this.#options.retries))
      return { ...outcome, isRecorded: true }
    const lending = known || asked.own ? undefined : this.#lending()
    const lender = lending && (await lending)
    const lent = lender && lentBy(lender, key, occurrence, asked)
    const entry = {
      key: known ? (outcome ? nextKey(known.key) : known.key) : key,
      occurrence,
      kind: asked.kind,
      request: recordOf(asked, lent && lender?.run) as unknown as Json,
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
    if (asked.light) journal.note(entry)
    journal.conclude(entry, kept as unknown as Json)
    if (asked.urgent) await journal.settled()
    return { ...kept, isRecorded: false }
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

  #lending(): Promise<RunRecord> | undefined {
    this.#lender ??= this.#options.lender?.()
    return this.#lender
  }
}

/** What is asked, as it may be written. */
export function cleaned(asked: Asked, store: Store): Asked {
  const request = store.clean(asked.request)
  return request === asked.request ? asked : { ...asked, request, text: undefined }
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

/** How often each key was asked for. */
export class Occurrences {
  readonly #counts = new Map<string, number>()

  /** How often so far. */
  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  next(key: string): number {
    const count = this.of(key)
    this.#counts.set(key, count + 1)
    return count
  }
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
