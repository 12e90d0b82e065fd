import type { ChunkBody, EffectOutcome, ToolOutcome } from './chunk.ts'
import { textOf } from './part.ts'

/** What a chunk says, for people: one reading of every kind, used by `chunk.text`, printing and search. */
export function chunkText(chunk: ChunkBody): string {
  switch (chunk.kind) {
    case 'system':
    case 'user':
    case 'assistant':
      return textOf(chunk.content)
    case 'tool-result':
      return outcomeText(chunk.outcome)
    case 'effect':
      return `${chunk.name}: ${effectText(chunk.outcome)}`
    case 'memory':
      return chunk.error ?? chunk.injected ?? chunk.query ?? ''
    case 'placement':
      return typeof chunk.spec === 'string' ? `${chunk.backend} ${chunk.spec}` : chunk.backend
    case 'route':
      return `${chunk.choice ?? 'none'}${chunk.reason ? `: ${chunk.reason}` : ''}`
    case 'approval':
      return [chunk.verdict ?? 'asked', chunk.question ?? chunk.tool, chunk.reason].filter(Boolean).join(': ')
    case 'verdict':
      return [chunk.verdict, chunk.subject, chunk.reason].filter(Boolean).join(': ')
    case 'merge':
      return `${chunk.policy} of ${chunk.branches.map(({ branch }) => branch || 'trunk').join(', ')}`
    case 'compress':
      return chunk.summary
    case 'error':
      return `${chunk.error}: ${chunk.message}`
    case 'note':
      return chunk.data === undefined ? chunk.name : `${chunk.name}: ${JSON.stringify(chunk.data)}`
  }
}

function effectText(outcome: EffectOutcome): string {
  if (outcome.kind === 'error') return `${outcome.error}: ${outcome.message}`
  return typeof outcome.value === 'string' ? outcome.value : JSON.stringify(outcome.value)
}

/** A tool's outcome as the text a model reads: strings as they are, other values as JSON. */
export function outcomeText(outcome: ToolOutcome): string {
  if (outcome.kind === 'denied') return `denied: ${outcome.reason}`
  if (outcome.kind === 'error') return `${outcome.error}: ${outcome.message}`
  if (outcome.content) return textOf(outcome.content)
  return typeof outcome.value === 'string' ? outcome.value : JSON.stringify(outcome.value)
}
