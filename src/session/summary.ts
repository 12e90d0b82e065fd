import type { Digest } from '../base/digest.ts'
import { backwards, foldAt } from './chain.ts'
import type { Chunk, CompressBody } from './chunk.ts'
import { areSiblings, endsTurn } from './fold.ts'
import { identityOf } from './identity.ts'
import { type Message, MessageView } from './message.ts'

/** For a replaced chunk, the summary that stands for it now; a summary may itself have been summarised since. */
export function summariesOf(
  compressions: readonly Chunk<'compress'>[],
): (chunk: Chunk) => Chunk<'compress'> | undefined {
  const summaryById = new Map<Digest, Chunk<'compress'>>()
  for (const chunk of compressions) for (const id of chunk.replaced) summaryById.set(id, chunk)
  const replacing = (chunk: Chunk) => {
    const summary = summaryById.get(chunk.id) ?? summaryById.get(identityOf(chunk))
    // A summary stands for what came before it. A record that says otherwise was altered, and must not loop.
    return summary && summary.index > chunk.index ? summary : undefined
  }
  return chunk => {
    let summary = replacing(chunk)
    for (let next = summary; next; next = replacing(next)) summary = next
    return summary
  }
}

/**
 * The chunks that a view is made of, in its order: a summary stands where the first chunk that it replaced was, or at its own
 * place when a merge left those out.
 */
export function* standing(chunks: Iterable<Chunk>): Generator<Chunk> {
  const history = [...chunks]
  const compressions = history.filter(chunk => chunk.kind === 'compress')
  if (compressions.length === 0) {
    yield* history
    return
  }
  const replacing = summariesOf(compressions)
  const shown = new Set<Chunk>()
  for (const chunk of history) {
    const summary = replacing(chunk) ?? (chunk.kind === 'compress' ? chunk : undefined)
    if (summary === undefined) yield chunk
    else if (!shown.has(summary)) {
      shown.add(summary)
      yield summary
    }
  }
}

/**
 * The last non-empty assistant text, or the summary that replaced it; a summary alone when no answer is left. Empty when the call that
 * should have answered was stopped: an answer from before that is none to it.
 */
export function lastText(tip: Chunk | undefined): string {
  if (cutShort(tip)) return ''
  const compressions: Chunk<'compress'>[] = []
  for (const chunk of backwards(tip)) {
    if (chunk.kind === 'compress') compressions.push(chunk)
    if (chunk.kind !== 'assistant' || chunk.text === '') continue
    let standing: Chunk = chunk
    for (const summary of compressions.reverse())
      if (stands(summary, chunk) || stands(summary, standing)) standing = summary
    return standing.text
  }
  return compressions[0]?.text ?? ''
}

/** What stopped the call that should have answered, if nothing was answered since; of branches that were merged, an answer of one stands beside the stop of another. */
export function cutShort(tip: Chunk | undefined): Chunk<'error'> | undefined {
  const { stops } = foldAt(tip)
  if (stops.length === 0) return undefined
  /** Those that nothing was asked before, so far. */
  const later: Chunk<'error'>[] = []
  const cuts: Chunk<'error'>[] = []
  for (const chunk of backwards(tip)) {
    if (chunk.kind === 'error' && stops.includes(chunk)) (endsTurn(chunk) ? cuts : later).push(chunk)
    if (chunk.kind === 'user' || chunk.kind === 'tool-result') cuts.push(...later.splice(0))
    if (chunk.kind === 'assistant' && chunk.text !== '')
      return cuts.find(({ branch }) => !areSiblings(branch, chunk.branch))
  }
  return cuts[0]
}

/** Whether a summary names a chunk. Looks from the end: the last answer is near it, whatever the summary stands for besides. */
function stands(summary: Chunk<'compress'>, chunk: Chunk): boolean {
  const { replaced } = summary
  const identity = identityOf(chunk)
  for (let i = replaced.length - 1; i >= 0; i--)
    if (replaced[i] === identity || replaced[i] === chunk.id) return true
  return false
}

/** A new summary names chunks by what stays the same about them, so that it finds them after any number of merges. */
export function anchored(body: CompressBody, chunks: Iterable<Chunk>): CompressBody {
  const wanted = new Set(body.replaced)
  const identities = new Map<Digest, Digest>()
  for (const chunk of chunks) {
    if (wanted.size === 0) break
    if (wanted.delete(chunk.id)) identities.set(chunk.id, identityOf(chunk))
    else wanted.delete(identityOf(chunk))
  }
  return { ...body, replaced: Object.freeze(body.replaced.map(id => identities.get(id) ?? id)) }
}

/** Whether a model is shown a chunk, as long as no summary stands for it. */
export function reachesModel(chunk: Chunk): boolean {
  switch (chunk.kind) {
    case 'system':
    case 'user':
    case 'assistant':
    case 'tool-result':
    case 'compress':
      return true
    case 'memory':
      return Boolean(chunk.injected)
    default:
      return false
  }
}

/**
 * The model-visible view of a history, valid for every provider whatever the history went through: system messages
 * first, every tool call answered exactly once and directly after it, in the order asked, no call id twice, and names of tools
 * that providers take. A name that a model made up is written otherwise here, and stays as it was on the record.
 */
export function viewMessages(chunks: Iterable<Chunk>): Message[] {
  const view = new MessageView()
  for (const chunk of standing(chunks)) view.add(chunk)
  return view.messages()
}
