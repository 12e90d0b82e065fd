import { sha256 } from '../base/digest.ts'
import type { Json } from '../base/json.ts'
import type { JournalEntry, NewEntry } from '../store/spec.ts'
import {
  type Asker,
  askedIn,
  askerIn,
  definition,
  type EntryName,
  insideOf,
  type KeyRule,
  nextKey,
} from './entry.ts'

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

export function nameOf({ key, occurrence }: EntryName): string {
  return `${key} ${occurrence}`
}
