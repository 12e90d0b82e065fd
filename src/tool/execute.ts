import { onAbort } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import { stopsRun } from '../base/run-stop.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import { freshSession, type Session } from '../session/session.ts'
import { failed, outcomeOf, thrownOutcome } from './outcome.ts'
import type { PreparedCall } from './prepare.ts'
import type { ToolContext } from './spec.ts'
import type { Turn } from './turn.ts'

/**
 * Runs one call to its outcome, and ends at a timeout or a cancellation even when the tool does not. Rejects only with what stops the
 * run itself, from a call inside the tool.
 */
export function execute(
  { tool, parsed: args, call }: PreparedCall,
  turn: Turn,
  cancellation: Cancellation,
  /** Another way to open the sandbox than the turn's. */
  sandbox?: () => Promise<Sandbox>,
): Promise<ToolOutcome> {
  if (cancellation.isAborted) return Promise.resolve(neverStarted)
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const context = new RunningCall(call.id, turn, sandbox)
    const finish = (outcome: ToolOutcome) => {
      context.isOpen = false
      clearTimeout(timer)
      forget()
      resolve(outcome)
    }
    const stop = (outcome: ToolOutcome, reason: unknown) => {
      context.isOpen = false
      context.abort(reason)
      finish(outcome)
    }
    const forget = cancellation.follow(() => {
      const message = `The run was cancelled while ${tool.name} was running; it may have taken effect.`
      stop(failed('cancelled', message), cancellation.reason)
    })
    if (tool.timeout !== undefined && Number.isFinite(tool.timeout)) {
      timer = setTimeout(() => {
        const message = `${tool.name} did not finish within ${tool.timeout} ms and was told to stop; it may have taken effect.`
        stop(failed('timed-out', message), new DOMException(message, 'TimeoutError'))
      }, tool.timeout)
    }
    const returned = (result: unknown) => context.isOpen && finish(outcomeOf(result, tool.name))
    const threw = (error: unknown) => {
      if (!context.isOpen) return
      if (stopsRun(error)) reject(error)
      finish(thrownOutcome(error))
    }
    try {
      const result = tool.run(args, context)
      if (isThenable(result)) Promise.resolve(result).then(returned, threw)
      else returned(result)
    } catch (error) {
      threw(error)
    }
  })
}

export const neverStarted = Object.freeze(
  failed('cancelled', 'The run was cancelled before this call started.'),
)

/** What a tool, or a question whether it may run, gets to know of its call. */
export class RunningCall implements ToolContext {
  readonly callId: string
  /** A call that has ended is no longer heard. */
  isOpen = true
  readonly #turn: Turn
  readonly #open: (() => Promise<Sandbox>) | undefined
  #session: Session | undefined
  #controller: AbortController | undefined

  constructor(callId: string, turn: Turn, open?: () => Promise<Sandbox>) {
    this.callId = callId
    this.#turn = turn
    this.#open = open
  }

  /** Its forks are numbered from its own beginning: the other calls of the turn may not be made when a run goes on. */
  get session(): Session {
    this.#session ??= freshSession(this.#turn.session)
    return this.#session
  }

  get sandbox(): Promise<Sandbox> {
    const place = (this.#open ? this.#open() : this.#turn.sandbox?.()) ?? Promise.reject(nowhere())
    // A tool that asks and does not wait has not failed by that.
    place.catch(() => {})
    return place
  }

  /** Made when first asked for: most tools never look at it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  /** Bound: tools take what they need out of their context. */
  readonly progress = (data: Json): void => {
    if (!this.isOpen) return
    try {
      this.#turn.onProgress?.(this.callId, data)
    } catch {
      // A listener cannot disturb the tool.
    }
  }

  abort(reason: unknown): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}

function nowhere(): RathError {
  return new RathError('placement-missing', 'Tools are called here without a place to work in.')
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** The signal of a turn, and everything in the turn that waits on it; `dispose` lets go of all of them at once. */
export class Cancellation {
  readonly #signal: AbortSignal
  readonly #followers = new Set<Disposable>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  get isAborted(): boolean {
    return this.#signal.aborted
  }

  get reason(): unknown {
    return this.#signal.reason
  }

  /** Calls back when the signal aborts, at once if it has; returns what to call when it no longer matters. */
  follow(follower: () => void): () => void {
    const link = onAbort(this.#signal, follower)
    this.#followers.add(link)
    return () => {
      this.#followers.delete(link)
      link[Symbol.dispose]()
    }
  }

  /** What a promise gives, or `undefined` as soon as the signal aborts. The promise itself goes on unheard. */
  orAborted<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const forget = this.follow(() => resolve(undefined))
      promise.then(
        value => {
          forget()
          resolve(value)
        },
        error => {
          forget()
          reject(error)
        },
      )
    })
  }

  dispose(): void {
    for (const link of this.#followers) link[Symbol.dispose]()
    this.#followers.clear()
  }
}
