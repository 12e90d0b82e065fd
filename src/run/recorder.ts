import { refuseAltered } from '../session/altered.ts'
import type { ChunkInput } from '../session/chunk.ts'
import { onLane } from '../session/lineage.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import { type SessionValue, tipAfter } from '../session/value.ts'
import type { Store } from '../store/spec.ts'
import { emit, type RunContext } from './context.ts'

/**
 * The session that a call makes, as it grows. It begins with what the store keeps of its input, so that keys of the journal never cover a
 * secret. `add` puts chunks on it, `keep` waits until the store has them, `keepSoon` lets the next write of the run take them along.
 */
export class Recorder {
  readonly #context: RunContext
  readonly store: Store
  /** What the session grew from, until the store has it too: a graph has no missing parents. */
  #input: Session | undefined
  #value: SessionValue
  /** As far as writes were asked for, and as far as whoever follows was told. */
  #kept: SessionValue
  #told: number

  private constructor(input: Session, context: RunContext, store: Store) {
    this.#context = context
    this.store = store
    this.#input = input
    const value = valueFrom(input)
    const lineage = onLane(context.out.lineage, value.lineage.lane)
    this.#value = { ...value, id: context.out.id, lineage, since: context.out.id }
    this.#kept = this.#value
    this.#told = input.length
  }

  static async on(input: Session, context: RunContext): Promise<Recorder> {
    refuseAltered(input)
    const store = await context.runtime.store
    return new Recorder(store.clean(input), context, store)
  }

  get session(): Session {
    return sessionOf(this.#value)
  }

  add(...chunks: readonly ChunkInput[]): void {
    const { by } = this.#context
    const { clock } = this.#context
    // What was done side by side goes on the record in the order asked: a chunk is never older than the one before it.
    let last = this.#value.tip?.at ?? 0
    const signed = chunks.map(chunk => {
      last = Math.max(last, chunk.at ?? (clock ? clock.now() : Date.now()))
      return 'by' in chunk ? { ...chunk, at: last } : { ...chunk, by, at: last }
    })
    const value = { ...this.#value, tip: tipAfter(this.#value, signed, last) }
    this.#value = value
  }

  async keep(): Promise<void> {
    const { run } = this.#context
    for (const session of this.#unkept()) await run.keep(session)
    await run.settled()
    this.#tell()
  }

  /** Waits only when somebody follows: nobody is shown what could still be lost. */
  keepSoon(): Promise<unknown> | undefined {
    if (this.#context.events.observed) return this.keep()
    let waits: Promise<unknown> | undefined
    for (const session of this.#unkept()) {
      const { run } = this.#context
      waits = waits ? waits.then(() => run.keep(session)) : run.keep(session)
    }
    return waits
  }

  /** The last thing that a call does. What the outermost call made is durable when its run has ended, and not told before. */
  keepLast(): Promise<unknown> | undefined {
    return this.#context.isOutermost ? this.keepSoon() : this.keep()
  }

  async record(...chunks: readonly ChunkInput[]): Promise<void> {
    this.add(...chunks)
    await this.keep()
  }

  #unkept(): Session[] {
    if (this.#value === this.#kept) return []
    // What is kept may differ from what was given: secrets are taken out, and the run goes on without them.
    const session = this.store.clean(this.session)
    this.#value = valueFrom(session)
    this.#kept = this.#value
    const input = this.#input
    this.#input = undefined
    return input ? [input, session] : [session]
  }

  #tell(): void {
    const from = this.#told
    this.#told = this.session.length
    if (!this.#context.events.observed) return
    for (const chunk of this.session.chunks.slice(from)) emit(this.#context, { type: 'chunk', chunk })
  }
}
