import type { Chunk } from '../session/chunk.ts'
import type { Output } from './output.ts'
import { indent, oneLine, plain } from './text.ts'

/** A chunk for people: its place, kind and text, on one line or in full. */
export function chunkLines(chunk: Chunk, output: Output, isFull: boolean): string {
  const place = output.paint('dim', String(chunk.index).padStart(4))
  const kind = output.paint('cyan', chunk.kind.padEnd(11))
  const room = Math.max(40, output.width(output.stdout) - 18)
  if (!isFull)
    return `${place} ${kind} ${oneLine([prefix(chunk), said(chunk)].filter(Boolean).join(' '), room)}`
  const about = [
    prefix(chunk),
    chunk.by,
    chunk.branch && `branch ${chunk.branch}`,
    new Date(chunk.at).toISOString(),
  ]
  return `${place} ${kind} ${output.paint('dim', plain(about.filter(Boolean).join(', ')))}\n${indent(plain(said(chunk)), '     ')}`
}

/** What it says, with the calls that an answer makes. */
function said(chunk: Chunk): string {
  if (chunk.kind !== 'assistant') return chunk.text
  const calls = chunk.content.flatMap(part =>
    part.type === 'tool-call' ? [`→ ${part.name}(${JSON.stringify(part.args)})`] : [],
  )
  return [chunk.text, ...calls].filter(Boolean).join('\n')
}

function prefix(chunk: Chunk): string {
  return chunk.kind === 'tool-result' ? `${chunk.tool} ←` : ''
}
