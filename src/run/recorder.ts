import type { ChunkInput } from '../session/chunk.ts'
import { type Lineage, onLane } from '../session/lineage.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import { append, type SessionValue } from '../session/value.ts'
import { emit, type RunContext } from './context.ts'

/**
 * The session that a call makes, as it grows. `add` puts chunks on it, `keep` waits until the store has them; `record` does both.
 * Whoever is about to touch the world keeps first.
 */
export class Recorder {
  readonly #context: RunContext
  /** What the session grew from, until the store has it too: a graph has no missing parents. */
  #input: Session | undefined
  readonly #lineage: Lineage
  #value: SessionValue
  #kept: SessionValue

  constructor(input: Session, context: RunContext) {
    this.#context = context
    this.#input = input
    const value = valueFrom(input)
    this.#lineage = onLane(context.out.lineage, value.lineage.lane)
    this.#value = { ...value, id: context.out.id, lineage: this.#lineage }
    this.#kept = this.#value
  }

  get session(): Session {
    return sessionOf(this.#value)
  }

  add(...chunks: readonly ChunkInput[]): void {
    const { by, out } = this.#context
    const signed = chunks.map(chunk => ('by' in chunk ? chunk : { ...chunk, by }))
    this.#value = { ...append(this.#value, signed), id: out.id, lineage: this.#lineage }
  }

  async keep(): Promise<void> {
    const from = this.#kept.tip ? this.#kept.tip.index + 1 : 0
    if (this.#value === this.#kept) return
    const store = await this.#context.runtime.store
    const [kept] = await Promise.all([
      store.sessions.put(this.session),
      this.#input && store.sessions.put(this.#input),
    ])
    this.#input = undefined
    // What was kept may differ from what was given: secrets are taken out, and the run goes on without them.
    this.#value = valueFrom(kept)
    this.#kept = this.#value
    if (!this.#context.events.observed) return
    for (const chunk of this.session.chunks.slice(from)) emit(this.#context, { type: 'chunk', chunk })
  }

  async record(...chunks: readonly ChunkInput[]): Promise<void> {
    this.add(...chunks)
    await this.keep()
  }
}
