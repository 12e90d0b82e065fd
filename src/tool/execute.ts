import { RathError } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import { stopsRun } from '../base/run-stop.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import type { Session } from '../session/session.ts'
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
    let isOpen = true
    let timer: NodeJS.Timeout | undefined
    const { context, abort } = contextFor(execution, () => isOpen)
    const finish = (outcome: ToolOutcome) => {
      isOpen = false
      clearTimeout(timer)
      forget()
      resolve(outcome)
    }
    const stop = (outcome: ToolOutcome, reason: unknown) => {
      isOpen = false
      abort(reason)
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
    const returned = (result: unknown) => isOpen && finish(outcomeOf(result, tool.name))
    const threw = (error: unknown) => {
      if (!isOpen) return
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
export function contextFor(
  { session, callId, sandbox, onProgress }: Omit<Execution, 'tool' | 'args' | 'cancellation'>,
  isOpen: () => boolean,
): { context: ToolContext; abort(reason: unknown): void } {
  let controller: AbortController | undefined
  const context: ToolContext = {
    session,
    callId,
    get sandbox() {
      const place = sandbox ? sandbox() : Promise.reject(nowhere())
      // A tool that asks and does not wait has not failed by that.
      place.catch(() => {})
      return place
    },
    // Made when first asked for: most tools never look at it.
    get signal() {
      controller ??= new AbortController()
      return controller.signal
    },
    // A listener cannot disturb the tool, and a call that has ended is no longer heard.
    progress(data) {
      if (!isOpen()) return
      try {
        onProgress?.(callId, data)
      } catch {}
    },
  }
  const abort = (reason: unknown) => {
    controller ??= new AbortController()
    controller.abort(reason)
  }
  return { context, abort }
}

function nowhere(): RathError {
  return new RathError('placement-missing', 'Tools are called here without a place to work in.')
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
