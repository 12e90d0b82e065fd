import { structuredPatch } from 'diff'
import { gitCaution } from '../base/git-settings.ts'
import { isPlainObject, type Json, type JsonObject } from '../base/json.ts'
import type { Unfinished } from '../run/approve/review.ts'
import type { Output } from './output.ts'
import { count, indent, oneVisibleLine, safeJson, visible } from './text.ts'

/** A call as a person decides about it. */
export interface ShownCall {
  readonly tool: string
  readonly args: Json
  /** The tool is one that comes with the package, not one with its name. Only then do its arguments mean what their names say. */
  readonly builtin?: boolean | undefined
  /** The file that it writes, as it is now. */
  readonly before?: string | undefined
}

/**
 * The tool and all of its arguments, which is what the digest of a question covers. Nothing is cut. Text of several lines has a bar in front of each, so that it cannot pass
 * for another argument, and what a terminal would not show is spelt out.
 */
export function callLines(call: ShownCall, output: Output): string {
  const { tool, args } = call
  const caution = gitCaution(args)
  const name = output.paint('bold', visible(tool)) + (caution ? `  ${output.paint('red', caution)}` : '')
  if (!isPlainObject(args)) return `${name}\n  ${safeJson(args)}`
  const rest: Record<string, Json> = { ...(args as JsonObject) }
  const special: string[] = []
  if (call.builtin) {
    for (const lines of [commandLine(tool, rest), changeLines(call, rest, output)]) special.push(...lines)
  }
  const lines = [...special, ...Object.entries(rest).flatMap(([key, value]) => argumentLines(key, value))]
  return [name, ...(lines.length > 0 ? lines : ['without arguments']).map(line => `  ${line}`)].join('\n')
}

/** An effect that was cut off, for the person who finds out whether it happened. */
export function effectLines({ kind, request }: Pick<Unfinished, 'kind' | 'request'>, output: Output): string {
  if (kind !== 'tool') return visible(`${kind} ${safeJson(request)}`)
  const { tool, args } = request as { readonly tool: string; readonly args: Json }
  return callLines({ tool, args }, output)
}

/** What a person is asked to find out, and what is on record that it may be. */
export function reviewLines(review: Unfinished, output: Output): string {
  const { kind, by, why, recorded = [] } = review
  const effect = indent(effectLines(review, output), '    ')
  if (why === 'cut-off') return `did this ${kind} effect of ${oneVisibleLine(by)} happen?\n${effect}`
  const outcomes = recorded.map(({ id, request, outcome, at }) => {
    const when = at === undefined ? '' : `, ${new Date(at).toISOString()}`
    const ended = visible(safeJson(outcome) ?? 'nothing')
    return `    ${id}${when}\n${indent(effectLines({ kind, request }, output), '      ')}\n      ended with ${ended}`
  })
  return `this ${kind} effect of ${oneVisibleLine(by)} is about to be done, and is not on record:\n${effect}\n  It may be one of these, which nothing has asked for again:\n${outcomes.join('\n')}`
}

/**
 * What stands right above a question about a call that is longer than the screen: how much of it has left the screen, and which arguments it has. Undefined
 * when all of it is in sight.
 */
export function offScreen(shown: string, { tool, args }: ShownCall, output: Output): string | undefined {
  const { rows = 0, isTTY } = output.stdout
  const height = rows || (isTTY ? usualHeight : Infinity)
  const width = output.width()
  const taken = shown.split('\n').reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / width)), 0)
  // The question itself, this line and the prompt.
  const hidden = taken + 4 - height
  if (hidden <= 0) return undefined
  const parts = Object.entries(args ?? {}).map(([key, value]) => `${nameOf(key)} ${sizeOf(value)}`)
  return output.paint(
    'yellow',
    `↑ ${count(hidden, 'line')} of this call to ${visible(tool)} ${hidden === 1 ? 'is' : 'are'} above the screen (${parts.join(', ')}). Scroll up before you decide.`,
  )
}

/** Of a terminal that does not say. */
const usualHeight = 24

/** A command of one line as a shell would show it. It is taken out of `rest`. */
function commandLine(tool: string, rest: Record<string, Json>): string[] {
  const { cmd } = rest
  if (tool !== 'run_shell_command' || typeof cmd !== 'string' || cmd.includes('\n')) return []
  delete rest.cmd
  return [`$ ${visible(cmd)}`]
}

/** What a write changes in the file as it is, and what an edit replaces. Both are taken out of `rest`. */
function changeLines({ tool, before }: ShownCall, rest: Record<string, Json>, output: Output): string[] {
  const { path, content, old, new: replacement } = rest
  if (typeof path !== 'string') return []
  if (tool === 'write_workspace_file' && typeof content === 'string' && before !== undefined) {
    const changed = diffLines(before, content, 3, output)
    if (changed === undefined) return []
    delete rest.path
    delete rest.content
    const what = changed.length === 0 ? 'the file as it is now' : 'as a change of the file as it is now'
    return [...argumentLines('path', path), `content (${sizeOf(content)}), ${what}:`, ...changed]
  }
  if (tool === 'edit_workspace_file' && typeof old === 'string' && typeof replacement === 'string') {
    const changed = diffLines(old, replacement, Number.MAX_SAFE_INTEGER, output)
    if (!changed?.length) return []
    for (const key of ['path', 'old', 'new']) delete rest[key]
    const sizes = `old (${sizeOf(old)}) and new (${sizeOf(replacement)})`
    return [...argumentLines('path', path), `${sizes}, as a change:`, ...changed]
  }
  return []
}

/** Milliseconds that a diff may take: texts of a model can be made to take hours. */
const patience = 500

/** Undefined when it takes too long; the texts are then shown whole. */
function diffLines(before: string, after: string, context: number, output: Output): string[] | undefined {
  const patch = structuredPatch('', '', before, after, '', '', { context, timeout: patience })
  return patch?.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    bar + output.paint('cyan', `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`),
    ...lines.map(line => bar + coloured(visible(line), output)),
  ])
}

function coloured(line: string, output: Output): string {
  if (line.startsWith('+')) return output.paint('green', line)
  return line.startsWith('-') ? output.paint('red', line) : line
}

const bar = '│ '

function argumentLines(key: string, value: Json): string[] {
  const name = nameOf(key)
  if (typeof value === 'string' && value.includes('\n')) {
    const lines = value.replace(/\n$/, '').split('\n')
    return [`${name} (${sizeOf(value)}):`, ...lines.map(line => bar + visible(line))]
  }
  const short = safeJson(value) ?? ''
  if (typeof value !== 'object' || value === null || short.length <= 100) return [`${name}: ${short}`]
  const lines = (safeJson(value, 2) ?? '').split('\n')
  return [`${name} (${count(lines.length, 'line')}):`, ...lines.map(line => bar + line)]
}

/** A model may choose names, too. */
function nameOf(key: string): string {
  return /^[\w.-]+$/.test(key) ? key : (safeJson(key) ?? '')
}

function sizeOf(value: Json): string {
  const text = typeof value === 'string' ? value : (safeJson(value, 2) ?? '')
  return `${count(text.replace(/\n$/, '').split('\n').length, 'line')}, ${count(text.length, 'character')}`
}
