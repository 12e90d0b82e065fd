import { RathError, show } from '../base/errors.ts'
import type { Provider } from '../model/provider.ts'
import { type ModelChoice, type ResolvedModel, resolveLater } from '../model/resolve.ts'
import type { RetryOptions } from '../model/retry.ts'
import { BudgetSpent } from '../run/ask.ts'
import { endedAt, stopCall } from '../run/budget-end.ts'
import { checkKeep, compress, type Keep } from '../run/compress.ts'
import { type CallOptions, currentContext, type RunContext } from '../run/context.ts'
import { type Recorder, recorded } from '../run/recorder.ts'
import type { Session } from '../session/session.ts'
import type { Needs } from './needs.ts'
import { Workflow } from './workflow.ts'

export interface CompressorOptions {
  /** Who writes the summary; by default what the environment or config file names. */
  readonly model?: ModelChoice
  readonly provider?: Provider
  /** What stays as it is at the end: a number of chunks, or `{ tokens }` at four characters a token; 0 by default. */
  readonly keep?: Keep
  /** Tokens that one request may have, at four characters each; a longer history is summarised piece by piece. No limit by default. */
  readonly maxInput?: number
  readonly retry?: RetryOptions
}

/**
 * Replaces the history by a summary in everything a model is shown from here on. The record keeps the originals: `session.chunks` has
 * them, and `restore` brings them back. A session with fewer than two chunks to replace comes back as it is.
 */
export class Compressor extends Workflow {
  override description = 'Makes the conversation shorter.'
  readonly instruction: string
  model: ResolvedModel
  readonly keep: Keep
  readonly maxInput: number
  readonly #retry: RetryOptions | undefined

  constructor(instruction: string, options: CompressorOptions = {}) {
    super()
    const { model, provider, keep = 0, maxInput = Infinity, retry } = options
    if (typeof instruction !== 'string' || instruction.trim() === '') {
      throw new RathError(
        'invalid-argument',
        `A Compressor takes an instruction such as 'Keep decisions and open questions.', not ${show(instruction)}.`,
      )
    }
    if (!(maxInput > 0)) {
      throw new RathError('invalid-argument', `maxInput is a number of tokens, not ${show(maxInput)}.`)
    }
    this.instruction = instruction
    this.model = resolveLater(model ?? provider)
    this.keep = checkKeep(keep)
    this.maxInput = maxInput
    this.#retry = retry
  }

  override get callOptions(): CallOptions {
    const { budget } = this.model
    return budget ? { budget } : {}
  }

  override needs(): Needs {
    const { budget } = this.callOptions
    return {
      model: this.model,
      ...(budget && { budget }),
      unknown: ['whether the session is long enough to compress, and what the summary says'],
    }
  }

  forward(session: Session): Promise<Session> {
    const context = currentContext()
    if (!context) {
      throw new RathError(
        'invalid-argument',
        `Call the compressor itself, ${this.name}(session), and not its forward.`,
      )
    }
    return recorded(session, context, recorder => this.#compress(recorder, context))
  }

  async #compress(recorder: Recorder, context: RunContext): Promise<void> {
    const { instruction, keep, maxInput } = this
    const model = context.runtime.models.instead(this.model)
    const spent = await endedAt({ session: recorder.session, place: { compress: 0 } }, context)
    if (spent) return stop(spent, recorder, context)
    const retry = this.#retry ?? model.retry ?? {}
    try {
      await compress(
        { model, settings: model.settings, retry, instruction, keep, maxInput },
        recorder,
        context,
      )
    } catch (error) {
      if (!(error instanceof BudgetSpent)) throw error
      await stop(error.message, recorder, context)
    }
  }
}

function stop(spent: string, recorder: Recorder, context: RunContext): Promise<void> {
  const message = `The budget is used up: ${spent}. The history was not compressed.`
  return stopCall({ error: 'budget-spent', message }, recorder, context)
}
