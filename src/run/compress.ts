import { digestOf } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { Model, ModelAnswer, ModelRequest, ModelSettings } from '../model/spec.ts'
import type { Chunk } from '../session/chunk.ts'
import { textOf } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import { reachesModel, standing } from '../session/summary.ts'
import { addUsage, noUsage, type Usage } from '../session/usage.ts'
import { askAside, BudgetSpent, quiet } from './ask.ts'
import { endedAt } from './budget-end.ts'
import type { RunContext } from './context.ts'
import type { Recorder } from './recorder.ts'
import {
  charactersPerToken,
  estimateChunk,
  estimateRequest,
  estimateText,
  takePiece,
  transcriptOf,
} from './transcript.ts'

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

/**
 * What a compression leaves as it is, counted from the end: at least so many chunks of those that a model sees, or as many as fit into so
 * many tokens (four characters each). A tool call and its results stay together, on either side.
 */
export type Keep = number | { readonly tokens: number }

export function checkKeep(keep: Keep): Keep {
  const isCount = typeof keep === 'number' && Number.isSafeInteger(keep) && keep >= 0
  const isBudget = typeof keep === 'object' && keep !== null && keep.tokens >= 0
  if (isCount || isBudget) return keep
  throw new RathError(
    'invalid-argument',
    `keep is a number of chunks or { tokens }, each at least 0, not ${show(keep)}.`,
  )
}

/**
 * The chunks that a summary would stand for, in the order of the view. Instructions of the session (`system`) stay, and so does a turn
 * whose calls are not all answered: its results are still to come.
 */
export function toReplace(session: Session, keep: Keep): readonly Chunk[] {
  const groups = groupsOf([...standing(session.chunks)].filter(isReplaceable))
  if (session.pending.some(({ kind }) => kind === 'tool-call')) keepOpenTurn(groups, session)
  let left = typeof keep === 'number' ? keep : keep.tokens
  while (left > 0 && groups.length > 0) {
    const group = groups.at(-1) as Chunk[]
    if (typeof keep === 'number') left -= group.length
    else left -= group.reduce((sum, chunk) => sum + estimateChunk(chunk), 0)
    // A budget is not gone over; a number of chunks is, by the rest of a turn.
    if (typeof keep !== 'number' && left < 0) break
    groups.pop()
  }
  return groups.flat()
}

function isReplaceable(chunk: Chunk): boolean {
  return chunk.kind !== 'system' && reachesModel(chunk)
}

/** Chunks that must not be told apart: an answer with its calls, up to the last of their results. */
function groupsOf(chunks: readonly Chunk[]): Chunk[][] {
  const groups: Chunk[][] = []
  for (let i = 0; i < chunks.length; ) {
    const end = endOfTurn(chunks, i)
    groups.push(chunks.slice(i, end))
    i = end
  }
  return groups
}

function endOfTurn(chunks: readonly Chunk[], start: number): number {
  const first = chunks[start] as Chunk
  let end = start + 1
  if (first.kind !== 'assistant') return end
  const calls = new Set(first.content.flatMap(part => (part.type === 'tool-call' ? [part.id] : [])))
  for (let i = end; i < chunks.length && calls.size > 0; i++) {
    const chunk = chunks[i] as Chunk
    if (chunk.kind === 'assistant') break
    if (chunk.kind === 'tool-result' && calls.delete(chunk.callId)) end = i + 1
  }
  return end
}

function keepOpenTurn(groups: Chunk[][], session: Session): void {
  const open = session.pending.find(pending => pending.kind === 'tool-call')?.chunk
  const at = groups.findIndex(group => group.some(chunk => chunk.index === open?.index))
  if (at >= 0) groups.splice(at)
}

/** When and how an agent shortens its own history. */
export interface AutoCompress {
  /** Tokens: before a request that would have more, the history is compressed. Leave room below the model's limit for the answer. */
  readonly above: number
  /** What stays as it is at the end; as much as fits into a quarter of `above` by default. */
  readonly keep?: Keep
  /** What the summary should hold. */
  readonly instruction?: string
}

const usualCompressInstruction =
  'You summarise the work of an agent so that it can go on without the original. Keep the task and its constraints word for word, what was done and found out, decisions with their reasons, names, paths and numbers that are still needed, and what is left to do. Leave out greetings and dead ends.'

export function checkAutoCompress(auto: AutoCompress): AutoCompress {
  if (!(auto?.above > 0)) {
    throw new RathError(
      'invalid-argument',
      `autoCompress takes { above: tokens }, a number above 0, not ${show(auto?.above)}.`,
    )
  }
  if (auto.keep !== undefined) checkKeep(auto.keep)
  return auto
}

/** What a loop knows about itself. */
interface Compressible {
  readonly autoCompress?: AutoCompress | undefined
  readonly model: Model
  readonly settings: ModelSettings
  readonly retry: RetryOptions
}

/** Compresses before a request that would be too large; `request` makes it as it would be now. */
export async function makeRoom(
  { autoCompress: auto, model, settings, retry }: Compressible,
  request: () => ModelRequest,
  recorder: Recorder,
  context: RunContext,
): Promise<void> {
  if (!auto) return
  if ((knownSize(recorder, context.by) ?? estimateRequest(request())) <= auto.above) return
  const { above, keep = { tokens: above / 4 }, instruction = usualCompressInstruction } = auto
  const summarise = (kept: Keep) =>
    compress(
      // A request that is too large for the agent is too large for its summary.
      { model: quiet(model), settings, retry, instruction, keep: kept, maxInput: above },
      recorder,
      context,
    )
  await summarise(keep)
  // What was to be kept was too much, alone or with the instructions and tools.
  if (keep !== 0 && estimateRequest(request()) > above) await summarise(0)
}

/**
 * What the provider counted for the last request and its answer, and an estimate of what came since; undefined after a summary or a
 * merge, which change more than the end.
 */
function knownSize(recorder: Recorder, by: string): number | undefined {
  const { chunks } = recorder.session
  let since = 0
  for (let i = chunks.length - 1; i >= 0; i--) {
    const chunk = chunks.at(i)
    if (chunk === undefined || chunk.kind === 'compress' || chunk.kind === 'merge') return undefined
    if (chunk.kind === 'assistant' && chunk.by === by && chunk.usage?.inputTokens)
      return chunk.usage.inputTokens + chunk.usage.outputTokens + since
    since += estimateChunk(chunk)
  }
  return undefined
}
