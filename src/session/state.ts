import { type Digest, digestOfOrdered } from '../base/digest.ts'
import { asJson, type Json, type JsonObject } from '../base/json.ts'
import { type Branch, labelsOf } from './branch.ts'
import type { Chunk } from './chunk.ts'
import { identityOf } from './identity.ts'
import type { AnswerPart, Part } from './part.ts'

export const nothing: Digest = digestOfOrdered({ perceived: null })

/** The state of a session on `branch` whose last chunk is `tip`. A fork without a label has that of what it was forked off. */
export function stateOn(tip: Chunk | undefined, branch: Branch): Digest {
  const before = tip ? tip.state : nothing
  const labels = labelsOf(branch)
  return labelsOf(tip?.branch ?? '') === labels ? before : digestOfOrdered({ before, branch: labels })
}

/**
 * The state after a chunk. One that nobody perceives moves it only by entering a branch, so a retry or a note
 * on the record leaves every key of the journal as it was.
 */
export function stateAfter(before: Chunk | undefined, chunk: Chunk, perceived: Json | undefined): Digest {
  const state = stateOn(before, chunk.branch ?? '')
  return perceived === undefined ? state : digestOfOrdered({ before: state, perceived })
}

/**
 * What a model is shown of a chunk: what was said and done; never times, usage, latencies, provider extras, the ids that
 * providers invent, or files that it has not looked at. Undefined for pure evidence. `turn` is the answer whose tools are
 * running; `earlier` walks back from the chunk before this one. Keys are written in canonical order, as those of a chunk are.
 */
export function perceive(
  chunk: Chunk,
  turn: Chunk<'assistant'> | undefined,
  earlier: () => Iterable<Chunk>,
): Json | undefined {
  switch (chunk.kind) {
    case 'system':
    case 'user':
      return { content: chunk.content.map(perceivePart), kind: chunk.kind }
    case 'assistant':
      return { content: chunk.content.map(perceivePart), kind: chunk.kind }
    case 'tool-result':
      return {
        args: chunk.args ?? null,
        call: callOrdinal(chunk, turn),
        kind: chunk.kind,
        outcome: perceiveOutcome(chunk),
        tool: chunk.tool,
      }
    case 'memory':
      return chunk.injected ? { injected: chunk.injected, kind: chunk.kind } : undefined
    case 'compress':
      return { kind: chunk.kind, ...replacedBy(chunk, earlier(), secondStates), summary: chunk.summary }
    default:
      return undefined
  }
}

function perceivePart(part: AnswerPart): Json {
  if (part.type === 'tool-call') return { args: part.args, name: part.name, type: part.type }
  if (part.extras === undefined) return asJson(part)
  const { extras: _, ...perceived } = part
  return perceived
}

function perceiveOutcome(chunk: Chunk<'tool-result'>): Json {
  const { outcome } = chunk
  if (outcome.kind !== 'value' || outcome.content === undefined) return asJson(outcome)
  return { ...outcome, content: outcome.content.map((part: Part) => perceivePart(part)) }
}

/** Which of its turn's calls a result answers; the provider's id for it would differ from run to run. */
function callOrdinal(chunk: Chunk<'tool-result'>, turn: Chunk<'assistant'> | undefined): number {
  let ordinal = 0
  for (const part of turn?.content ?? []) {
    if (part.type !== 'tool-call') continue
    if (part.id === chunk.callId) return ordinal
    ordinal++
  }
  return -1
}

/** States by one rule: which chunks are perceived, and their states. */
export interface States {
  isPerceived(chunk: Chunk): boolean
  of(chunk: Chunk): Digest
}

const secondStates: States = {
  isPerceived: chunk => perceive(chunk, undefined, () => []) !== undefined,
  of: chunk => chunk.state,
}

/**
 * What a summary hides and where it stands: the states of the perceived chunks it replaced, and the state before the
 * first it replaced. Their ids would cover times, which nobody perceives.
 */
export function replacedBy(chunk: Chunk<'compress'>, earlier: Iterable<Chunk>, states: States): JsonObject {
  const wanted = new Set(chunk.replaced)
  const replaced: Digest[] = []
  let place: Digest | null = null
  let foundFirst = false
  for (const candidate of earlier) {
    if (foundFirst) place = states.of(candidate)
    if (wanted.size === 0) break
    foundFirst = wanted.delete(candidate.id) || wanted.delete(identityOf(candidate))
    if (!foundFirst) continue
    place = null
    if (states.isPerceived(candidate)) replaced.push(states.of(candidate))
  }
  return { place, replaced }
}
