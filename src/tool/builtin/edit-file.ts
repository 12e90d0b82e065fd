import { tool } from '../tool.ts'
import { ToolError } from '../tool-error.ts'
import { readText } from './read-file.ts'
import { inSandbox } from './readable.ts'
import { changedFile } from './resources.ts'

export const editWorkspaceFile = tool<{ path: string; old: string; new: string; all?: boolean }>({
  name: 'edit_workspace_file',
  description:
    'Replace a piece of a text file of the workspace. `old` must be in it exactly once, to the last space; give lines around it to make it so, or `all` to replace every one.',
  input: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Path in the workspace.' },
      old: { type: 'string', minLength: 1, description: 'The text as it stands in the file.' },
      new: { type: 'string', description: 'What shall stand there instead.' },
      all: { type: 'boolean', description: 'Replace every occurrence; false by default.' },
    },
    required: ['path', 'old', 'new'],
    additionalProperties: false,
  },
  effect: 'workspace',
  resource: ({ path }) => changedFile(path),
  run: ({ path, old, new: replacement, all = false }, context) =>
    inSandbox(context, async sandbox => {
      if (old === replacement) throw new ToolError('invalid-arguments', 'old and new are the same text.')
      const text = await readText(sandbox, path)
      const places = occurrences(text, old)
      const [first] = places
      if (first === undefined) throw notThere(text, old, path)
      if (places.length > 1 && !all) throw ambiguous(text, places, path)
      const pieces = text.split(old)
      await sandbox.files.write(path, pieces.join(replacement))
      return { path, replaced: pieces.length - 1, line: lineAt(text, first) }
    }),
})

function occurrences(text: string, old: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(old); at >= 0; at = text.indexOf(old, at + old.length)) places.push(at)
  return places
}

function lineAt(text: string, index: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) line++
  return line
}

function notThere(text: string, old: string, path: string): ToolError {
  const near = nearestPlace(text, old)
  const hint = near ? `\n${near.why}\n${near.shown}` : ' Read the file and try again.'
  return new ToolError('threw', `The text is not in ${path} as given; nothing was changed.${hint}`)
}

function ambiguous(text: string, places: readonly number[], path: string): ToolError {
  const lines = places.slice(0, 10).map(at => lineAt(text, at))
  const more = places.length > lines.length ? ' …' : ''
  return new ToolError(
    'threw',
    `The text is in ${path} ${places.length} times, at lines ${lines.join(', ')}${more}; nothing was changed. ` +
      'Give more of the lines around the one you mean, or all: true.',
    { detail: { lines } },
  )
}

/** Where a text that is not in a file probably should have been found. */
interface NearestPlace {
  readonly why: string
  /** The lines there, as they are, each with its number. */
  readonly shown: string
}

/** Longer files are not compared line by line. */
const longest = 20_000
const longestWanted = 500
const shownLines = 12

/** The lines that are most like the wanted ones; nothing when none is like them at all. */
function nearestPlace(text: string, wanted: string): NearestPlace | undefined {
  const lines = text.split('\n')
  const looked = wanted.split('\n')
  while (looked.length > 1 && looked[0] === '') looked.shift()
  while (looked.length > 1 && looked.at(-1) === '') looked.pop()
  if (lines.length > longest || looked.length > longestWanted) return undefined
  const loose = looseMatch(lines, looked)
  if (loose !== undefined) {
    const why = lines[loose]?.endsWith('\r')
      ? 'It is there but for white space: the lines of the file end in \\r\\n. The file has:'
      : 'It is there but for white space. The file has:'
    return { why, shown: show(lines, loose, looked.length) }
  }
  const best = mostAlike(lines, looked)
  return best === undefined
    ? undefined
    : { why: 'The nearest place in the file is:', shown: show(lines, best, looked.length) }
}

/** Where the wanted lines stand, white space aside. */
function looseMatch(lines: readonly string[], wanted: readonly string[]): number | undefined {
  const [given, sought] = [lines.map(squeeze), wanted.map(squeeze)]
  if (sought.every(line => line === '')) return undefined
  for (let start = 0; start + sought.length <= given.length; start++) {
    if (sought.every((line, i) => given[start + i] === line)) return start
  }
  return undefined
}

/** Where the lines have the most in common with the wanted ones, if that is enough to be no accident. */
function mostAlike(lines: readonly string[], wanted: readonly string[]): number | undefined {
  const sought = wanted.slice(0, 20).map(pairsOf)
  const given = lines.map(pairsOf)
  let best = { at: -1, score: 0.4 * sought.length }
  for (let start = 0; start < given.length; start++) {
    let score = 0
    for (let i = 0; i < sought.length; i++) {
      score += likeness(given[start + i], sought[i] as ReadonlySet<string>)
    }
    if (score > best.score) best = { at: start, score }
  }
  return best.at < 0 ? undefined : best.at
}

/** Dice's measure over pairs of neighbouring characters: 1 for the same, 0 for nothing in common. */
function likeness(one: ReadonlySet<string> | undefined, other: ReadonlySet<string>): number {
  if (one === undefined || one.size + other.size === 0) return 0
  let common = 0
  for (const pair of one) if (other.has(pair)) common++
  return (2 * common) / (one.size + other.size)
}

function pairsOf(line: string): ReadonlySet<string> {
  const text = squeeze(line).slice(0, 200)
  const pairs = new Set<string>()
  for (let i = 0; i + 1 < text.length; i++) pairs.add(text.slice(i, i + 2))
  return pairs
}

function squeeze(line: string): string {
  return line.trim().replace(/\s+/g, ' ')
}

function show(lines: readonly string[], start: number, count: number): string {
  const end = Math.min(lines.length, start + Math.min(count, shownLines))
  return lines
    .slice(start, end)
    .map((line, i) => `${start + i + 1}: ${line.replace(/\r$/, '')}`)
    .join('\n')
}

export const writeWorkspaceFile = tool<{ path: string; content: string }>({
  name: 'write_workspace_file',
  description:
    'Write a text file of the workspace, whole. Makes missing folders, and replaces what was there.',
  input: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Path in the workspace.' },
      content: { type: 'string', description: 'Everything that the file shall hold.' },
    },
    required: ['path', 'content'],
    additionalProperties: false,
  },
  effect: 'workspace',
  resource: ({ path }) => changedFile(path),
  run: ({ path, content }, context) =>
    inSandbox(context, async ({ files }) => {
      const bytes = new TextEncoder().encode(content)
      const before = await files.stat(path)
      await files.write(path, bytes)
      return { path, bytes: bytes.length, created: before === null }
    }),
})
