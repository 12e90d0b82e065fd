import { type Digest, digestOf } from '../../base/digest.ts'
import type { BundleHead } from './format.ts'

export interface SectionProblem {
  readonly reason: string
  readonly session?: string
  readonly index?: number
  readonly chunk?: Digest
}

/** Recomputes the ids of the sessions of a file. Records are as `JSON.parse` gave them; what a chunk means plays no part. */
export class SectionChecker {
  /** How many chunks a session has at each chunk read so far: later sections may continue from any. */
  readonly #lengths = new Map<Digest, number>()
  #record: Digest = ''
  #head: Digest | null = null
  #length = 0
  session: string | undefined
  isOpen = false
  /** The head of the section that ended last. */
  ended: BundleHead | undefined
  sessions = 0
  chunks = 0

  add(record: Readonly<Record<string, unknown>>): SectionProblem | undefined {
    if (record.type === 'session') return this.#begin(record)
    if (!this.isOpen) return { reason: `is a ${record.type} record outside of any session` }
    return record.type === 'chunk' ? this.#chunk(record) : this.#end(record)
  }

  #begin(record: Readonly<Record<string, unknown>>): SectionProblem | undefined {
    const { id, after, digest } = record
    if (this.isOpen) return { reason: `opens a session while the section of ${this.session} has not ended` }
    if (typeof id !== 'string') return { reason: 'is a session record without an id' }
    const length = after === undefined ? 0 : this.#lengths.get(after as Digest)
    if (length === undefined)
      return { reason: `continues from chunk ${after}, which does not come before it`, session: id }
    this.session = id
    this.isOpen = true
    this.#record = digest as Digest
    this.#head = (after as Digest | undefined) ?? null
    this.#length = length
    return undefined
  }

  #chunk({ id, chunk, type: _, ...others }: Readonly<Record<string, unknown>>): SectionProblem | undefined {
    const index = this.#length
    const where = { session: this.session as string, index, chunk: id as Digest }
    if (Object.keys(others).length > 0)
      return { ...where, reason: `was altered: a chunk record has no member ${Object.keys(others)[0]}` }
    const expected = digestOf([this.#head, chunk ?? null])
    if (id !== expected) {
      const kind = (chunk as { kind?: unknown } | null | undefined)?.kind
      const reason = `was altered: chunk ${index} (${kind}) is recorded as ${id} and its content gives ${expected}`
      return { ...where, reason }
    }
    this.#head = expected
    this.#length = index + 1
    this.#lengths.set(expected, this.#length)
    this.chunks++
    return undefined
  }

  #end({ session, head, length }: Readonly<Record<string, unknown>>): SectionProblem | undefined {
    if (session !== this.session) return { reason: `ends session ${session}, and ${this.session} is open` }
    if (head !== this.#head || length !== this.#length) {
      return {
        session: this.session as string,
        reason: `says that session ${session} has ${length} chunks up to ${head}; ${this.#length} up to ${this.#head} are here`,
      }
    }
    this.isOpen = false
    this.ended = { session: session as string, head: this.#head, record: this.#record }
    this.sessions++
    return undefined
  }
}
