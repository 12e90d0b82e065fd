import { RathError, show } from '../base/errors.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { Model, ModelRequest, ModelSettings } from '../model/spec.ts'
import { quiet } from './aside.ts'
import { compress } from './compress.ts'
import type { RunContext } from './context.ts'
import { estimateChunk, estimateRequest } from './estimate.ts'
import { checkKeep, type Keep } from './keep.ts'
import type { Recorder } from './recorder.ts'

/** When and how an agent shortens its own history. */
export interface AutoCompress {
  /** Tokens: before a request that would have more, the history is compressed. Leave room below the model's limit for the answer. */
  readonly above: number
  /** What stays as it is at the end; as much as fits into a quarter of `above` by default. */
  readonly keep?: Keep
  /** What the summary should hold. */
  readonly instruction?: string
}

export const usualCompressInstruction =
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
export interface Compressible {
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
