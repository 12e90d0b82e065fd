import { chunkAt, foldAt, lengthOf } from './chain.ts'
import type { Chunk } from './chunk.ts'
import { placementAt } from './placement.ts'
import type { SessionValue } from './value.ts'

const headLines = 4
const tailLines = 4
const lineWidth = 100

/** A short readable print: who it is, then its chunks, a long middle left out. Costs the lines it prints. */
export function printSession(value: SessionValue): string {
  const { tip } = value
  const length = lengthOf(tip)
  const lines = [title(value)]
  const line = (index: number) => lines.push(printChunk(chunkAt(tip as Chunk, index)))
  if (length <= headLines + tailLines + 1) {
    for (let i = 0; i < length; i++) line(i)
  } else {
    for (let i = 0; i < headLines; i++) line(i)
    lines.push(`     … ${length - headLines - tailLines} more`)
    for (let i = length - tailLines; i < length; i++) line(i)
  }
  return lines.join('\n')
}

function title({ id, tip, branch, lineage }: SessionValue): string {
  const facts = [`${lengthOf(tip)} chunks`, lineage.operation]
  if (branch) facts.push(`branch ${branch}`)
  const placement = placementAt(tip)
  if (placement) facts.push(`on ${placement.backend}`)
  const { totalTokens } = foldAt(tip).usage
  if (totalTokens > 0) facts.push(`${totalTokens} tokens`)
  const stop = foldAt(tip).stops.at(-1)
  if (stop) facts.push(`stopped: ${stop.error}`)
  return `Session ${id} (${facts.join(', ')})`
}

function printChunk(chunk: Chunk): string {
  const said = [chunk.text]
  if (chunk.kind === 'assistant') {
    for (const part of chunk.content) {
      if (part.type === 'tool-call') said.push(`→ ${part.name}(${JSON.stringify(part.args)})`)
    }
  }
  if (chunk.kind === 'tool-result') said.unshift(`${chunk.tool} ←`)
  return `${String(chunk.index).padStart(4)} ${chunk.kind.padEnd(11)} ${oneLine(said.filter(Boolean).join(' '))}`
}

/** One line that is safe on a terminal: model output may hold escape sequences and characters that reverse the text. */
function oneLine(text: string): string {
  const flat = text
    .slice(0, 4 * lineWidth)
    .replace(/\s+/g, ' ')
    .replace(/[\p{Cc}\p{Cf}]/gu, '\ufffd')
    .trim()
  return flat.length > lineWidth ? `${flat.slice(0, lineWidth - 1)}…` : flat
}
