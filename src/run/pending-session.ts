import { cancelledError, onAbort } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import type { Lineage } from '../session/lineage.ts'
import type { PartInput } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { EventStream, RunEvent } from './event.ts'

/** What is known of it from the start, and how to stop it. */
export interface PendingFacts {
  readonly out: { readonly id: string; readonly lineage: Lineage }
  readonly runId: string
  readonly events: EventStream
  readonly aborted: boolean
  cancel(reason?: unknown): void
}

/** Reads the structured output of a session, where whoever made it promised one. */
interface OutputReader {
  readonly outputOf?: ((session: Session) => Promise<unknown>) | undefined
}

let factsOf: (pending: PendingSession) => PendingFacts

/**
 * A session that is being made: a promise of it, and the events of its making. Who it will be (`id`, `lineage`) is known from
 * the start. Iterating throws at the end what awaiting would throw.
 */
export class PendingSession<Output = unknown> extends Promise<Session> implements AsyncIterable<RunEvent> {
  readonly #facts: PendingFacts
  readonly #reader: OutputReader | undefined
  #observed = false

  static {
    factsOf = pending => pending.#facts
  }

  /** The work starts in the next turn, so that whoever is handed this can follow it from its first event. */
  constructor(facts: PendingFacts, work: () => Promise<Session>, reader?: OutputReader) {
    let resolve!: (session: Session) => void
    let reject!: (error: unknown) => void
    super((done, failed) => {
      resolve = done
      reject = failed
    })
    this.#facts = facts
    this.#reader = reader
    queueMicrotask(() => {
      work().then(resolve, error => {
        this.#failed(error)
        reject(error)
      })
    })
  }

  /** What `then` returns is an ordinary promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  get id(): string {
    return this.#facts.out.id
  }

  get runId(): string {
    return this.#facts.runId
  }

  get lineage(): Lineage {
    return this.#facts.out.lineage
  }

  /** The answer as the value that the agent's `output` schema makes of it; throws what awaiting the session would throw. */
  get output(): Promise<Output> {
    return this.then(session => {
      const reading = this.#reader?.outputOf?.(session)
      if (reading) return reading as Promise<Output>
      throw new RathError(
        'invalid-argument',
        'Only the call of an agent with a schema in output has an output: new Agent(prompt, { output: z.object(…) }).',
      )
    })
  }

  /** Stops the work; awaiting then throws a `cancelled` error with the session so far. */
  cancel(reason?: unknown): void {
    this.#facts.cancel(reason)
  }

  // biome-ignore lint/suspicious/noThenProperty: a promise that must know whether somebody waits for it.
  override then<A = Session, B = never>(
    onDone?: ((session: Session) => A | PromiseLike<A>) | null,
    onFailed?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#observed = true
    return super.then(onDone, onFailed)
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<RunEvent> {
    this.#observed = true
    return this.#facts.events.iterate(this)
  }

  override get [Symbol.toStringTag](): string {
    return 'PendingSession'
  }

  /** Nobody may ever look; then the failure is said once, and the process goes on. */
  #failed(error: unknown): void {
    super.then(undefined, () => {})
    setImmediate(() => {
      if (this.#observed) return
      const text = error instanceof Error ? error.message : String(error)
      process.emitWarning(
        `openrath: session ${this.id} failed and nobody waited for it: ${text}`,
        'OpenRathWarning',
      )
    })
  }
}

/**
 * The session for work that needs it and may be cancelled meanwhile. Where the session's own making is cancelled too, it is waited for all the
 * same: its error carries the work so far.
 */
export function untilMade(pending: PendingSession, signal: AbortSignal): Promise<Session> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      if (!factsOf(pending).aborted) reject(cancelledError(signal))
    }
    // In the next turn: what cancels both tells one of them first.
    const link = onAbort(signal, () => queueMicrotask(leave))
    pending.then(resolve, reject).finally(() => link[Symbol.dispose]())
  })
}

/** What a layer is called with: a session, one that is still being made, or what a user says, which starts one. */
export type SessionInput = Session | PendingSession | string | readonly PartInput[]
