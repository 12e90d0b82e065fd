import { sha256 } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import type { JournalEntry, NewEntry, RunRow, Store } from '../../store/spec.ts'
import {
  type Asked,
  type Asker,
  askedIn,
  askerIn,
  askerOf,
  checkEntry,
  cleaned,
  definition,
  type EntryName,
  inFirstRule,
  insideOf,
  type KeyRule,
  keyOf,
  nextKey,
  type Outcome,
  outcomeIn,
} from '../entry.ts'

/** A run's journal as it was read, to look outcomes up in. */
export class RunRecord {
  readonly run: string
  /** How its keys were made. */
  readonly rule: KeyRule
  readonly entries: readonly JournalEntry[]
  readonly #byName = new Map<string, JournalEntry>()
  readonly #byKey = new Map<string, JournalEntry[]>()
  /** By entry, everybody who claimed it besides who had asked for it, the last one last. */
  readonly #claimed = new Map<string, Asker[]>()
  /** Entries whose outcome a person has given to another one. */
  readonly #replaced = new Set<string>()
  #inside: Map<string, JournalEntry[]> | undefined

  constructor(run: string, entries: readonly JournalEntry[], rule: KeyRule = 2) {
    this.run = run
    this.rule = rule
    this.entries = entries
    for (const entry of entries) {
      checkEntry(entry)
      this.#byName.set(nameOf(entry), entry)
      if (entry.kind === definition) this.#readClaim(entry)
      else {
        const { instead } = askedIn(entry)
        if (instead !== undefined) this.#replaced.add(instead)
      }
      const equal = this.#byKey.get(entry.key)
      if (equal) equal.push(entry)
      else this.#byKey.set(entry.key, [entry])
    }
  }

  /** The entry of an effect; of one that failed and was tried again, the last. */
  find(key: string, occurrence: number): JournalEntry | undefined {
    let found = this.#byName.get(nameOf({ key, occurrence }))
    for (let next = found; next; next = this.#byName.get(nameOf({ key: nextKey(next.key), occurrence })))
      found = next
    return found
  }

  /** The same as it was first asked for. */
  first(key: string, occurrence: number): JournalEntry | undefined {
    return this.#byName.get(nameOf({ key, occurrence }))
  }

  /** Every effect that was asked for with this key. */
  withKey(key: string): readonly JournalEntry[] {
    return this.#byKey.get(key) ?? []
  }

  /** The effects that were done as part of this one. */
  inside(entry: EntryName): readonly JournalEntry[] {
    if (this.#inside === undefined) {
      this.#inside = new Map()
      for (const effect of this.effects()) {
        const { inside } = askerIn(askedIn(effect))
        if (inside === '') continue
        const others = this.#inside.get(inside)
        if (others) others.push(effect)
        else this.#inside.set(inside, [effect])
      }
    }
    return this.#inside.get(insideOf(entry)) ?? []
  }

  /** Who had an entry last: who asked for it, or who claimed it when the run went on in another order. */
  askerOf(entry: JournalEntry): Asker {
    return this.#claimed.get(nameOf(entry))?.at(-1) ?? askerIn(askedIn(entry))
  }

  /** Writes down that somebody else has an entry now. */
  claim(entry: JournalEntry, { by, inside, sample, branch }: Asker): NewEntry {
    const claims = nameOf(entry)
    const before = this.#claimed.get(claims) ?? []
    this.#claimed.set(claims, [...before, { by, inside, sample, branch }])
    const whole = [inside, sample].filter(Boolean).join('/')
    const request = { claims, by, ...(whole !== '' && { sample: whole }), ...(branch !== '' && { branch }) }
    return {
      key: sha256(`claim ${claims}`),
      occurrence: before.length,
      kind: definition,
      request: request as Json,
    }
  }

  /** Whether a person has said that its outcome is that of another effect. */
  isReplaced(entry: EntryName): boolean {
    return this.#replaced.has(nameOf(entry))
  }

  /** What a request names by digest. */
  defined(digest: string): JournalEntry | undefined {
    const found = this.#byName.get(nameOf({ key: digest, occurrence: 0 }))
    return found?.kind === definition ? found : undefined
  }

  /** Effects, in the order they were asked. */
  effects(): JournalEntry[] {
    return this.entries.filter(entry => entry.kind !== definition)
  }

  #readClaim({ request }: JournalEntry): void {
    const { claims, ...asker } = (request ?? {}) as { claims?: unknown; by?: unknown }
    if (typeof claims !== 'string' || typeof asker.by !== 'string') return
    const before = this.#claimed.get(claims) ?? []
    this.#claimed.set(claims, [...before, askerIn(asker as Parameters<typeof askerIn>[0])])
  }
}

export async function loadRecord(id: string, store: Store): Promise<RunRecord> {
  const { data } = await store.runs.get(id)
  return new RunRecord(id, await store.runs.journal(id), ruleOf(data, id))
}

/** How the keys of a run were made. One that a later version recorded is not read as if it were of this one. */
function ruleOf({ format }: RunRow['data'], id: string): KeyRule {
  if (format === undefined || format === 1) return 1
  if (format === 2) return 2
  throw new RathError(
    'format-newer',
    `Run ${id} was recorded with format ${show(format)} of the journal, and this version reads 1 and 2. Update openrath.`,
  )
}

export function nameOf({ key, occurrence }: EntryName): string {
  return `${key} ${occurrence}`
}

/** The entry of whoever asks. */
export interface Claim {
  readonly occurrence: number
  /** On record under this key: it was somebody else's until now. */
  readonly moved?: JournalEntry | undefined
}

/**
 * Who has which entry of a record. An entry is found by its key, so by what was asked and what it was asked from. Of several with one key an
 * asker takes the one that it had; else any that nobody has taken: equal askers may come in another order, under another name, or on another
 * fork than when they were recorded. What is not on record is numbered in the order asked.
 */
export class Claims {
  readonly #record: RunRecord | undefined
  readonly #isLender: boolean
  readonly #left = new Map<string, Left>()
  readonly #taken = new Set<string>()
  #rivals: Map<string, JournalEntry[]> | undefined

  /** With `isLender`, the record is another run's: then it does not matter as part of what something was done. */
  constructor(record?: RunRecord, isLender = false) {
    this.#record = record
    this.#isLender = isLender
  }

  take(key: string, asker: Asker): Claim {
    const left = this.#leftOf(key)
    const own = left.queues.get(nameOfAsker(asker))
    const mine = own && this.#next(key, own)
    if (own && mine !== undefined) return this.#pop(key, own, mine)
    const other = this.#nearest(key, left, asker)
    if (other === undefined) return { occurrence: left.next++ }
    const claim = this.#pop(key, other.queue, other.occurrence)
    return { ...claim, moved: this.#record?.first(key, claim.occurrence) }
  }

  /** What the record has for whoever asks: with the end of somebody else's work nothing is said about theirs. */
  recall(asked: Asked): Outcome | undefined {
    if (this.#record === undefined) return undefined
    const key = keyOf(asked, this.#record.rule)
    const queue = this.#leftOf(key).queues.get(nameOfAsker(askerOf(asked)))
    const occurrence = queue && this.#next(key, queue)
    return occurrence === undefined ? undefined : outcomeIn(this.#record.find(key, occurrence))
  }

  /** Its outcome was used: whatever was done inside it is used with it, and nobody asks for that any more. */
  settle(entry: EntryName): void {
    for (const inner of this.#record?.inside(entry) ?? []) {
      this.#taken.add(nameOf(inner))
      this.settle(inner)
    }
  }

  /** What the same asker did with the same tool, or as the same effect, outside this run's world, and nobody has asked for again so far. */
  unclaimed(kind: string, tool: string | undefined, by: string): JournalEntry[] {
    if (this.#record === undefined) return []
    this.#rivals ??= rivalsIn(this.#record)
    const rivals = this.#rivals.get(rivalName(kind, tool, by)) ?? []
    return rivals.filter(entry => !this.#taken.has(firstName(entry)) && !this.#record?.isReplaced(entry))
  }

  #pop(key: string, queue: Queue, occurrence: number): Claim {
    queue.occurrences.pop()
    this.#taken.add(nameOf({ key, occurrence }))
    return { occurrence }
  }

  /** The next of a queue that was not taken with what is around it. */
  #next(key: string, { occurrences }: Queue): number | undefined {
    for (let next = occurrences.at(-1); next !== undefined; next = occurrences.at(-1)) {
      if (!this.#taken.has(nameOf({ key, occurrence: next }))) return next
      occurrences.pop()
    }
    return undefined
  }

  #nearest(
    key: string,
    { queues }: Left,
    asker: Asker,
  ): { readonly queue: Queue; readonly occurrence: number } | undefined {
    let best: { queue: Queue; occurrence: number; score: number } | undefined
    for (const queue of queues.values()) {
      const occurrence = this.#next(key, queue)
      if (occurrence === undefined || !this.#mayTake(queue.asker, asker)) continue
      const score = likeness(queue.asker, asker)
      const isBetter =
        best === undefined || score > best.score || (score === best.score && occurrence < best.occurrence)
      if (isBetter) best = { queue, occurrence, score }
    }
    return best
  }

  /**
   * What is part of an effect belongs to it: where its outcome is known, nobody asks for what is inside it. One that was cut off may be begun
   * as another, whose parts find theirs.
   */
  #mayTake(theirs: Asker, { inside }: Asker): boolean {
    if (theirs.inside === inside || this.#isLender) return true
    return theirs.inside !== '' && !this.#isDone(theirs.inside)
  }

  #done: Set<string> | undefined

  #isDone(inside: string): boolean {
    this.#done ??= new Set(
      (this.#record?.effects() ?? []).filter(entry => entry.outcome !== undefined).map(insideOf),
    )
    return this.#done.has(inside)
  }

  #leftOf(key: string): Left {
    let left = this.#left.get(key)
    if (left === undefined) {
      left = leftIn(this.#record, key)
      this.#left.set(key, left)
    }
    return left
  }
}

/** The tool of a request, which names what is done better than its kind. */
export function toolIn(request: unknown): string | undefined {
  const { tool } = (request ?? {}) as { tool?: unknown }
  return typeof tool === 'string' ? tool : undefined
}

interface Queue {
  readonly asker: Asker
  /** Those that nobody has taken yet, the next one last. */
  readonly occurrences: number[]
}

interface Left {
  /** What is on record, by who asked. */
  readonly queues: ReadonlyMap<string, Queue>
  /** The first that is not on record. */
  next: number
}

const nobody: ReadonlyMap<string, Queue> = new Map()

function leftIn(record: RunRecord | undefined, key: string): Left {
  const entries = record?.withKey(key) ?? []
  if (record === undefined || entries.length === 0) return { queues: nobody, next: 0 }
  const sorted = [...entries].sort((a, b) => b.occurrence - a.occurrence)
  const queues = new Map<string, Queue>()
  for (const entry of sorted) {
    if (record.isReplaced(entry)) continue
    const asker = record.askerOf(entry)
    const name = nameOfAsker(asker)
    const queue = queues.get(name)
    if (queue) queue.occurrences.push(entry.occurrence)
    else queues.set(name, { asker, occurrences: [entry.occurrence] })
  }
  return { queues, next: (sorted[0] as { occurrence: number }).occurrence + 1 }
}

/** Who asks counts most: layers of different names that ask the same are not each other's samples. Then the branch, then the order asked. */
function likeness(one: Asker, other: Asker): number {
  return (
    (one.inside === other.inside ? 4000 : 0) +
    (one.by === other.by ? 2000 : 0) +
    (one.branch === other.branch ? 1000 : 0) +
    2 * Math.min(sharedForks(one.branch, other.branch), 400) +
    (one.sample === other.sample ? 1 : 0)
  )
}

/** Counted from the innermost fork: that one tells samples apart, while the forks around it may have been made in another order. */
function sharedForks(one: string, other: string): number {
  const names = one.split('/').reverse()
  const others = other.split('/').reverse()
  const differs = names.findIndex((name, i) => name !== others[i])
  return differs < 0 ? names.length : differs
}

function nameOfAsker({ by, inside, sample, branch }: Asker): string {
  return inside === '' && sample === '' && branch === '' ? by : `${by}\n${inside}\n${sample}\n${branch}`
}

function rivalsIn(record: RunRecord): Map<string, JournalEntry[]> {
  const rivals = new Map<string, JournalEntry[]>()
  for (const entry of record.effects()) {
    const { rule, request, by } = askedIn(entry)
    if (rule !== 'external' || outcomeIn(entry)?.value === undefined) continue
    const name = rivalName(entry.kind, toolIn(request), by)
    const others = rivals.get(name)
    if (others) others.push(entry)
    else rivals.set(name, [entry])
  }
  return rivals
}

/** The name under which an effect was first asked for, also when it failed then and was tried again. */
function firstName({ key, occurrence }: EntryName): string {
  return nameOf({ key: key.split('+')[0] as string, occurrence })
}

function rivalName(kind: string, tool: string | undefined, by: string): string {
  return `${kind}\n${tool ?? ''}\n${by}`
}

/** The run that another one borrows from. */
export class Lender {
  readonly record: RunRecord
  readonly #claims: Claims
  /** What is done inside an effect here, and inside which one it was done there. */
  readonly #inside = new Map<string, string>()

  constructor(record: RunRecord) {
    this.record = record
    this.#claims = new Claims(record, true)
  }

  /** Takes the entry that answers to an effect of the run that borrows. */
  take(given: Asked, at: EntryName, rule: KeyRule, store: Store): Loan {
    const { record } = this
    const asked = record.rule === 1 ? cleaned(inFirstRule(given), store) : given
    const key = record.rule === rule ? at.key : keyOf(cleaned(asked, store), record.rule)
    const { occurrence } = this.#claims.take(key, this.#askerThere(asked))
    const entry = record.find(key, occurrence)
    this.#inside.set(insideOf(at), insideOf({ key, occurrence }))
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
