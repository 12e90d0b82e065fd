import { RathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import { stopsRun } from '../base/run-stop.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import { freshSession, type Session } from '../session/session.ts'
import type { Cancellation } from './cancellation.ts'
import { failed, outcomeOf, thrownOutcome } from './outcome.ts'
import type { Tool, ToolContext } from './spec.ts'

export interface Execution {
  readonly tool: Tool
  /** As `tool.parse` made them. */
  readonly args: unknown
  readonly callId: string
  readonly session: Session
  readonly cancellation: Cancellation
  readonly sandbox?: (() => Promise<Sandbox>) | undefined
  readonly onProgress?: ((callId: string, data: Json) => void) | undefined
}

/**
 * Runs one call to its outcome, and ends at a timeout or a cancellation even when the tool does not. Rejects only with what stops the
 * run itself, from a call inside the tool.
 */
export function execute(execution: Execution): Promise<ToolOutcome> {
  const { tool, args, cancellation } = execution
  if (cancellation.isAborted) return Promise.resolve(neverStarted)
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const context = new CallContext(execution)
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
export class CallContext implements ToolContext {
  readonly session: Session
  readonly callId: string
  /** A call that has ended is no longer heard. */
  isOpen = true
  readonly #place: (() => Promise<Sandbox>) | undefined
  readonly #onProgress: Execution['onProgress']
  #controller: AbortController | undefined

  constructor({ session, callId, sandbox, onProgress }: Omit<Execution, 'tool' | 'args' | 'cancellation'>) {
    // Its forks are numbered from its own beginning: the other calls of the turn may not be made when a run goes on.
    this.session = freshSession(session)
    this.callId = callId
    this.#place = sandbox
    this.#onProgress = onProgress
  }

  get sandbox(): Promise<Sandbox> {
    const place = this.#place ? this.#place() : Promise.reject(nowhere())
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
      this.#onProgress?.(this.callId, data)
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
