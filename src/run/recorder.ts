import type { ChunkInput } from '../session/chunk.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import { append, type SessionValue } from '../session/value.ts'
import { emit, type RunContext } from './context.ts'

/** The session that a call makes, as it grows. What is recorded is in the store before anyone goes on. */
export class Recorder {
  readonly #context: RunContext
  #value: SessionValue

  constructor(input: Session, context: RunContext) {
    this.#context = context
    this.#value = { ...valueFrom(input), id: context.out.id, lineage: context.out.lineage }
  }

  get session(): Session {
    return sessionOf(this.#value)
  }

  async record(...chunks: readonly ChunkInput[]): Promise<void> {
    const { by, out, runtime, events } = this.#context
    const before = this.#value
    const grown = append(
      before,
      chunks.map(chunk => ('by' in chunk ? chunk : { ...chunk, by })),
    )
    this.#value = { ...grown, id: out.id, lineage: out.lineage }
    const store = await runtime.store
    // What was kept may differ from what was given: secrets are taken out, and the run goes on without them.
    this.#value = valueFrom(await store.sessions.put(this.session))
    if (!events.observed) return
    const recorded = this.session.chunks.slice(before.tip ? before.tip.index + 1 : 0)
    for (const chunk of recorded) emit(this.#context, { type: 'chunk', chunk })
  }
}
