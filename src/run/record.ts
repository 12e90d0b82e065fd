import type { JournalEntry } from '../store/spec.ts'
import { definition, nextKey } from './entry.ts'

/** A run's journal as it was read, to look outcomes up in. */
export class RunRecord {
  readonly run: string
  readonly entries: readonly JournalEntry[]
  readonly #byName = new Map<string, JournalEntry>()
  readonly #byKey = new Map<string, JournalEntry[]>()

  constructor(run: string, entries: readonly JournalEntry[]) {
    this.run = run
    this.entries = entries
    for (const entry of entries) {
      this.#byName.set(nameOf(entry), entry)
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

  /** Every effect that was asked for with this key. */
  withKey(key: string): readonly JournalEntry[] {
    return this.#byKey.get(key) ?? []
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
}

export function nameOf({ key, occurrence }: Pick<JournalEntry, 'key' | 'occurrence'>): string {
  return `${key} ${occurrence}`
}
