import { createTwoFilesPatch } from 'diff'
import type { Json } from '../base/json.ts'
import type { Unfinished } from '../run/unfinished.ts'
import type { Output } from './output.ts'
import { plain } from './text.ts'

/** What a call would do, for the person who decides: the command, the diff, or the arguments. `before` is the file as it is. */
export function callLines(tool: string, args: Json, output: Output, before?: string): string {
  const given = (args ?? {}) as Record<string, unknown>
  if (typeof given.cmd === 'string') {
    const where = typeof given.cwd === 'string' ? ` (in ${given.cwd})` : ''
    return plain(`$ ${given.cmd}${where}`)
  }
  if (typeof given.path === 'string' && typeof given.content === 'string') {
    return diffLines(given.path, before ?? '', given.content, output)
  }
  if (typeof given.path === 'string' && typeof given.old === 'string' && typeof given.new === 'string') {
    return diffLines(given.path, ...edited(before, given as unknown as Edit), output)
  }
  if (typeof given.code === 'string') return plain(`${String(given.language ?? 'python')}:\n${given.code}`)
  return plain(`${tool} ${JSON.stringify(args, null, 2)}`)
}

/** An effect that was cut off, for the person who finds out whether it happened. */
export function effectLines({ kind, request }: Pick<Unfinished, 'kind' | 'request'>, output: Output): string {
  if (kind !== 'tool') return plain(`${kind} ${JSON.stringify(request)}`)
  const { tool, args } = request as { readonly tool: string; readonly args: Json }
  return callLines(tool, args, output)
}

interface Edit {
  readonly old: string
  readonly new: string
  readonly all?: boolean
}

/** The whole file before and after; of a file that cannot be read, only the piece. */
function edited(before: string | undefined, { old, new: replacement, all }: Edit): [string, string] {
  if (!before?.includes(old)) return [old, replacement]
  return [before, all ? before.replaceAll(old, () => replacement) : before.replace(old, () => replacement)]
}

function diffLines(path: string, before: string, after: string, output: Output): string {
  const patch = createTwoFilesPatch(path, path, before, after, '', '', { context: 3 })
  const lines = plain(patch).split('\n').slice(1)
  return lines
    .map(line => coloured(line, output))
    .join('\n')
    .trimEnd()
}

function coloured(line: string, output: Output): string {
  if (line.startsWith('+') && !line.startsWith('+++')) return output.paint('green', line)
  if (line.startsWith('-') && !line.startsWith('---')) return output.paint('red', line)
  return line.startsWith('@@') ? output.paint('cyan', line) : line
}
