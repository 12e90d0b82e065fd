import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { promptId } from '../run/prompt.ts'
import type { Chunk, ChunkKind } from '../session/chunk.ts'
import type { Store } from '../store/spec.ts'
import type { LinesOfWork } from './lines-of-work.ts'

/** Who made a chunk, and what asked for it. */
export interface Producer {
  readonly chunk: Digest
  /** Its place in its session. */
  readonly index: number
  /** That session, where it is not the one that was asked about: a sub-agent's, or a branch that a merge left out. */
  readonly session?: string
  readonly kind: ChunkKind
  readonly at: number
  /** A path such as `Review/writer`; absent when a person or plain code did it. */
  readonly by?: string
  /** Empty on the trunk. */
  readonly branch: string
  /** What ran, when it was a tool. */
  readonly tool?: string
  /** The answer that made the call, or the chunk itself when it is one. */
  readonly answer?: Digest
  readonly model?: string
  readonly prompt?: Digest
}

export function producerOf(chunk: Chunk, lines: LinesOfWork): Producer {
  const { id, index, kind, at, by, branch = '' } = chunk
  const answer = answerBehind(chunk, lines)
  const author = by ?? answer?.by
  return {
    chunk: id,
    index,
    kind,
    at,
    branch,
    ...(author !== undefined && { by: author }),
    ...(chunk.kind === 'tool-result' && { tool: chunk.tool }),
    ...(answer && {
      answer: answer.id,
      ...(answer.model !== undefined && { model: answer.model }),
      ...(answer.prompt !== undefined && { prompt: answer.prompt }),
    }),
    ...('model' in chunk && chunk.model !== undefined && { model: chunk.model }),
  }
}

/** The answer of a model that a chunk is, or that called for it. */
export function answerBehind(chunk: Chunk, lines: LinesOfWork): Chunk<'assistant'> | undefined {
  if (chunk.kind === 'assistant') return chunk
  if (chunk.kind !== 'tool-result') return undefined
  for (let i = lines.before(chunk.index); i >= 0; i = lines.before(i)) {
    const earlier = lines.chunks[i] as Chunk
    if (earlier.kind !== 'assistant') continue
    if (earlier.content.some(part => part.type === 'tool-call' && part.id === chunk.callId)) return earlier
  }
  return undefined
}

/** The instructions with a digest; undefined when the store has not kept them. */
export async function promptText(prompt: Digest, store: Store): Promise<string | undefined> {
  try {
    const session = await store.sessions.get(promptId(prompt))
    return session.chunks.map(chunk => chunk.text).join('\n\n')
  } catch (error) {
    if (error instanceof RathError && error.code === 'unknown-session') return undefined
    throw error
  }
}
