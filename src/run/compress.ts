import { digestOf } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { Model, ModelAnswer, ModelSettings } from '../model/spec.ts'
import { textOf } from '../session/part.ts'
import { addUsage, noUsage, type Usage } from '../session/usage.ts'
import { askAside } from './aside.ts'
import { BudgetSpent } from './ask.ts'
import { endedAt } from './budget-end.ts'
import type { RunContext } from './context.ts'
import { charactersPerToken, estimateText } from './estimate.ts'
import { type Keep, toReplace } from './keep.ts'
import type { Recorder } from './recorder.ts'
import { takePiece, transcriptOf } from './transcript.ts'

export interface Compression {
  readonly model: Model
  readonly settings: ModelSettings
  readonly retry: RetryOptions
  /** What the summary should hold and leave out. */
  readonly instruction: string
  readonly keep: Keep
  /** Tokens that one request may have; a longer history is summarised piece by piece. */
  readonly maxInput: number
}

/**
 * Puts a summary on the record that stands for the history in every later view. The history itself stays where it is. Does nothing,
 * and says so, when fewer than two chunks could go: a summary of one message is not shorter.
 */
export async function compress(
  compression: Compression,
  recorder: Recorder,
  context: RunContext,
): Promise<boolean> {
  // What is kept may differ from what was added, and a summary names chunks by id.
  await recorder.keep()
  const replaced = toReplace(recorder.session, compression.keep)
  if (replaced.length < 2) return false
  const summary = await new Summary(compression, recorder, context).of(transcriptOf(replaced))
  await recorder.record({
    kind: 'compress',
    replaced: replaced.map(chunk => chunk.id),
    ...summary,
  })
  return true
}

class Summary {
  readonly #compression: Compression
  readonly #recorder: Recorder
  readonly #context: RunContext
  #usage: Usage | undefined

  constructor(compression: Compression, recorder: Recorder, context: RunContext) {
    this.#compression = compression
    this.#recorder = recorder
    this.#context = context
  }

  async of(messages: string[]): Promise<{ summary: string; model: string; usage?: Usage }> {
    const { instruction, maxInput, model } = this.#compression
    const room = (maxInput - estimateText(instruction)) * charactersPerToken
    let summary = ''
    let answeredBy = model.id
    try {
      for (let piece = 0; messages.length > 0; piece++) {
        const end = { session: this.#recorder.session, place: { compress: piece } }
        const spent = piece > 0 && (await endedAt(end, this.#context))
        if (spent) throw new BudgetSpent(spent)
        const frame = framed(summary, '').length
        const answer = await this.#ask(framed(summary, takePiece(messages, room - frame)))
        if (answer.usage) this.#usage = addUsage(this.#usage ?? noUsage, answer.usage)
        summary = accepted(answer, model.id)
        answeredBy = answer.model ?? model.id
      }
    } catch (error) {
      await this.#recordSpent(error)
      throw error
    }
    return { summary, model: answeredBy, ...(this.#usage && { usage: this.#usage }) }
  }

  #ask(text: string): Promise<ModelAnswer> {
    const { model, settings, retry, instruction } = this.#compression
    // No tools, and so no choice among them: providers refuse that.
    const request = () => ({
      messages: [
        { role: 'system' as const, content: [{ type: 'text' as const, text: instruction }] },
        { role: 'user' as const, content: [{ type: 'text' as const, text }] },
      ],
      tools: [],
      settings,
    })
    const about = { instruction, text: digestOf(text), settings }
    return askAside({ model, retry, about, request }, this.#recorder, this.#context)
  }

  /** An attempt that came to nothing was paid for all the same. */
  async #recordSpent(error: unknown): Promise<void> {
    if (this.#usage === undefined) return
    const known = error instanceof RathError ? error : undefined
    await this.#recorder.record({
      kind: 'error',
      error: known?.code ?? 'run-failed',
      message: `The history was not compressed: ${known?.message ?? 'it was stopped.'}`,
      usage: this.#usage,
    })
  }
}

/** The text of a summary that can stand for a history, and nothing less. */
function accepted({ content, finishReason }: ModelAnswer, model: string): string {
  const text = textOf(content).trim()
  const refuse = (why: string) => {
    throw new RathError('output-invalid', `The summary of ${model} is not used: ${why}`)
  }
  if (content.some(part => part.type === 'tool-call')) refuse('it calls a tool, and was given none.')
  if (finishReason === 'length')
    refuse(
      `it was cut short after ${text.length} characters; raise maxOutputTokens, or ask for a shorter one.`,
    )
  if (finishReason === 'content-filter' || finishReason === 'error') refuse(`it ended with ${finishReason}.`)
  if (text === '') refuse('it is empty.')
  return text
}

function framed(summary: string, piece: string): string {
  const before =
    summary === ''
      ? 'This is the conversation to summarise.'
      : `This is the summary of the conversation so far.\n\n<summary>\n${summary}\n</summary>\n\nThis is how it went on; write one summary of both.`
  return `${before}\n\n<conversation>\n${piece}\n</conversation>\n\nWrite the summary, as plain text and nothing else.`
}
