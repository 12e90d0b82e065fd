import type { BlamedChunk, BlamedLine } from './blame.ts'
import { codeLine, oneLine } from './one-line.ts'
import type { Producer } from './producer.ts'

/** One line of text for each line of the file: chunk, who, on which branch, and the line itself. */
export function printBlamedLines(lines: readonly BlamedLine[]): string {
  const marks = lines.map(markOf)
  const width = Math.max(0, ...marks.map(mark => mark.length))
  const digits = String(lines.at(-1)?.line ?? 0).length
  return lines
    .map(
      ({ line, text }, i) => `${marks[i]?.padEnd(width)}  ${String(line).padStart(digits)} ${codeLine(text)}`,
    )
    .join('\n')
}

export function printBlamedChunk({ producer, text, promptText, seen }: BlamedChunk): string {
  const facts = [
    ['chunk', `${producer.index} ${producer.kind} ${producer.chunk.slice(0, 12)}`],
    ['by', whoOf(producer)],
    ['branch', producer.branch || 'trunk'],
    ['model', producer.model ?? ''],
    ['tool', producer.tool ?? ''],
    ['prompt', promptText ?? producer.prompt?.slice(0, 12) ?? ''],
    ['says', text],
  ] as const
  const shown = facts.filter(([, value]) => value !== '')
  const lines = shown.map(([name, value]) => `${name.padEnd(7)} ${oneLine(value)}`)
  const inputs = seen.map(
    ({ index, kind, by, text }) =>
      `  ${String(index).padStart(4)} ${kind.padEnd(11)} ${oneLine([by && `${by}:`, text].filter(Boolean).join(' '), 100)}`,
  )
  return [...lines, seen.length > 0 ? 'had seen' : 'had seen nothing', ...inputs].join('\n')
}

function markOf({ source, producer }: BlamedLine): string {
  if (source === 'before' || producer === undefined) return 'before the session'
  if (source === 'drift') return `drift, a person or another program (seen at ${producer.index})`
  const who = source === 'merge' ? `merge ${whoOf(producer)}` : whoOf(producer)
  return [producer.chunk.slice(0, 8), who, producer.branch && `(${producer.branch})`, producer.model]
    .filter(Boolean)
    .join(' ')
}

function whoOf({ by, tool }: Producer): string {
  return by ?? tool ?? 'a person, or plain code'
}
