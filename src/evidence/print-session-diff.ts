import type { Chunk, FileChange } from '../session/chunk.ts'
import { oneLine } from './one-line.ts'
import type { SessionComparison, SideComparison } from './session-diff.ts'

export function printSessionDiff({ ancestor, shared, ours, theirs, files }: SessionComparison): string {
  const common = ancestor
    ? `${shared} chunks in common, up to ${ancestor.slice(0, 12)}`
    : 'nothing in common: the sessions are unrelated'
  const between = files ? ['files, from the first to the second', ...files.map(fileLine)] : []
  return [common, ...sideLines('<', ours), ...sideLines('>', theirs), ...between].join('\n')
}

function sideLines(mark: string, { session, branch, chunks, files, usage }: SideComparison): string[] {
  const cost = usage.cost === undefined ? '' : `, $${usage.cost.toFixed(4)}`
  const name = branch ? ` on ${oneLine(branch)}` : ''
  return [
    `${mark} ${session}${name}: ${chunks.length} chunks, ${usage.totalTokens} tokens${cost}`,
    ...chunks.map(chunk => `${mark} ${chunkLine(chunk)}`),
    ...files.map(file => `${mark} ${fileLine(file)}`),
  ]
}

function chunkLine(chunk: Chunk): string {
  const { index, kind, by, text } = chunk
  const calls =
    chunk.kind === 'assistant'
      ? chunk.content.flatMap(part => (part.type === 'tool-call' ? [`→ ${part.name}`] : []))
      : []
  const said = [by && `${by}:`, text, ...calls].filter(Boolean).join(' ')
  return `${String(index).padStart(4)} ${kind.padEnd(11)} ${oneLine(said, 100)}`
}

function fileLine({ change, path, from }: FileChange): string {
  return `     ${change.padEnd(8)} ${oneLine(from === undefined ? path : `${from} → ${path}`)}`
}
