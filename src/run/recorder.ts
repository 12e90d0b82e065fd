import { refuseAltered } from '../session/altered.ts'
import type { ChunkInput } from '../session/chunk.ts'
import { onLane } from '../session/lineage.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import { type SessionValue, tipAfter } from '../session/value.ts'
import type { Store } from '../store/spec.ts'
import { emit, type RunContext } from './context.ts'

/** Does work that records, and returns the session it made. An error carries that session as far as it came. */
export async function recorded(
  input: Session,
  context: RunContext,
  work: (recorder: Recorder) => Promise<void>,
): Promise<Session> {
  const recorder = await Recorder.on(input, context)
  try {
    await work(recorder)
  } catch (thrown) {
    // What stopped it may be the store itself.
    await recorder.keep().catch(() => {})
    throw Object.assign(context.run.own(thrown), { session: recorder.session })
  }
  return recorder.session
}

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
  /** The value as a session, once somebody has asked for it: one object for each value. */
  #session: Session | undefined
  /** As far as writes were asked for, and as far as whoever follows has been shown. */
  #kept: SessionValue
  #shown: number

  private constructor(input: Session, context: RunContext, store: Store) {
    this.#context = context
    this.store = store
    this.#input = input
    const value = valueFrom(input)
    const lineage = onLane(context.out.lineage, value.lineage.lane)
    this.#value = { ...value, id: context.out.id, lineage, since: context.out.id }
    this.#kept = this.#value
    this.#shown = input.length
  }

  static async on(input: Session, context: RunContext): Promise<Recorder> {
    refuseAltered(input)
    const store = await context.runtime.store
    return new Recorder(store.clean(input), context, store)
  }

  get session(): Session {
    this.#session ??= sessionOf(this.#value)
    return this.#session
  }

  add(...chunks: readonly ChunkInput[]): void {
    if (chunks.length === 0) return
    const { by, clock } = this.#context
    // What was done side by side goes on the record in the order asked: a chunk is never older than the one before it.
    let last = this.#value.tip?.at ?? 0
    const signed = chunks.map(chunk => {
      last = Math.max(last, chunk.at ?? (clock ? clock.now() : Date.now()))
      return 'by' in chunk ? { ...chunk, at: last } : { ...chunk, by, at: last }
    })
    this.#value = { ...this.#value, tip: tipAfter(this.#value, signed, last) }
    this.#session = undefined
  }

  async keep(): Promise<void> {
    const { run } = this.#context
    for (const session of this.#unkept()) await run.keep(session)
    await run.settled()
    this.#show()
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

  /** The last thing that a call does. What the outermost call made is durable when its run has ended, and not shown before. */
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
    this.#session = session
    this.#value = valueFrom(session)
    this.#kept = this.#value
    const input = this.#input
    this.#input = undefined
    return input ? [input, session] : [session]
  }

  #show(): void {
    const from = this.#shown
    this.#shown = this.session.length
    if (!this.#context.events.observed) return
    for (const chunk of this.session.chunks.slice(from)) emit(this.#context, { type: 'chunk', chunk })
  }
}
