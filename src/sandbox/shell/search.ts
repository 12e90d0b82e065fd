import { cancelledError } from '../../base/abort.ts'
import { RathError, show } from '../../base/errors.ts'
import { globMatcher } from '../glob.ts'
import { type LineMatcher, lineMatcher } from '../host/line-matcher.ts'
import type { SearchMatch, SearchQuery, SearchResult } from '../spec.ts'
import { Breath } from '../workspace/breath.ts'
import { candidateScript, contentScript } from './search-scripts.ts'
import type { ShellOptions } from './shell.ts'

const usualLimit = 100
/** Characters of a matching line that are shown. */
const lineLength = 500
/** What one script brings: bytes of files, and characters of their names, which are part of a command line. */
const batchBytes = 8 * 1024 * 1024
const batchNames = 32 * 1024

type Call = (script: string, args: readonly string[], options?: ShellOptions) => Promise<Uint8Array>

/**
 * Lists files where they are, and brings here what a line has to be found in: for a plain text the files that hold it, for an expression
 * all that fit the glob, since expressions of JavaScript are known only here.
 */
export async function searchByShell(query: SearchQuery, call: Call): Promise<SearchResult> {
  const { glob, text, regex = false, limit = usualLimit, signal } = query
  if (glob === undefined && text === undefined) {
    throw new RathError('invalid-argument', 'A search needs a glob for paths, or a text to find in files.')
  }
  if (!(limit >= 1)) throw new RathError('invalid-argument', `limit is at least 1, not ${show(limit)}.`)
  const fits = glob === undefined ? () => true : globMatcher(glob)
  const linesOf = text === undefined ? undefined : lineMatcher(text, regex)
  const wanted = text !== undefined && !regex ? text : ''
  const options = { isLong: true, signal }
  const found = parseCandidates(
    await call(candidateScript, [wanted, linesOf ? 'sizes' : ''], options),
    wanted !== '',
  )
  const shown = ({ name }: Candidate) => found.shown(name)
  const breath = new Breath(signal)
  const files: Candidate[] = []
  for (const file of found.files) {
    if (fits(file.name.slice(2))) files.push(file)
    if (breath.due) await breath.take()
  }
  files.sort(byPath)
  if (linesOf === undefined) {
    const matches = files.slice(0, limit).map(file => ({ path: shown(file) }))
    return { matches, truncated: files.length > limit, skipped: 0 }
  }
  const matches: SearchMatch[] = []
  const isText = (file: Candidate) => !file.isLarge && !file.isBinary
  let skipped = files.filter(file => !isText(file)).length
  for (const batch of batches(files.filter(file => isText(file) && file.mayHold))) {
    if (signal?.aborted) throw cancelledError(signal)
    for (const [file, bytes] of await contents(batch, call, options)) {
      if (breath.due) await breath.take()
      const lines = linesIn(bytes, linesOf, limit + 1 - matches.length)
      if (lines === undefined) skipped++
      for (const { line, text } of lines ?? []) {
        matches.push({ path: shown(file), line, text: text.slice(0, lineLength) })
      }
      if (matches.length > limit) return { matches: matches.slice(0, limit), truncated: true, skipped }
    }
  }
  return { matches, truncated: false, skipped }
}

interface Candidate {
  /** From where the search starts, with `./` before it. */
  readonly name: string
  readonly size: number
  readonly isLarge: boolean
  readonly isBinary: boolean
  readonly mayHold: boolean
}

function parseCandidates(bytes: Uint8Array, isFiltered: boolean) {
  const fields = new TextDecoder().decode(bytes).split('\0')
  const start = fields[0] as string
  const firstEnd = fields.indexOf('', 1)
  const secondEnd = fields.indexOf('', firstEnd + 1)
  const names = fields.slice(firstEnd + 1, secondEnd)
  const holding = new Set(fields[secondEnd + 1]?.split('\n'))
  const binary = parseBinary(fields[secondEnd + 2] ?? '')
  const sizes = parseSizes(names, fields[secondEnd + 3] ?? '')
  // A name with a line feed in it cannot be told in a list of lines.
  const mayHold = (name: string) => !isFiltered || holding.has(name) || name.includes('\n')
  const files: Candidate[] = fields
    .slice(1, firstEnd)
    .map(name => ({ name, size: 0, isLarge: true, isBinary: false, mayHold: true }))
  for (const [i, name] of names.entries()) {
    const size = sizes[i] ?? batchBytes
    files.push({ name, size, isLarge: false, isBinary: binary.has(name), mayHold: mayHold(name) })
  }
  const folder = start.slice(2)
  const inFolder = (name: string) => (folder === '' ? name.slice(2) : `${folder}/${name.slice(2)}`)
  return { files, shown: (name: string) => (start.startsWith('f') ? folder : inFolder(name)) }
}

/** Files whose beginning holds a zero byte. */
function parseBinary(lines: string): Set<string> {
  const found = new Set<string>()
  let name = ''
  for (const line of lines.split('\n')) {
    if (line === '\x01') found.add(name)
    else name = line.slice('==> '.length, -' <=='.length)
  }
  return found
}

/** The sizes of files from lines in the order of their names, some of which may be gone. */
function parseSizes(names: readonly string[], lines: string): (number | undefined)[] {
  let at = 0
  return names.map(name => {
    const space = lines.indexOf(' ', at)
    if (space < 0 || !lines.startsWith(`${name}\n`, space + 1)) return undefined
    const size = Number(lines.slice(at, space))
    at = space + name.length + 2
    return size
  })
}

function* batches(files: readonly Candidate[]): Generator<Candidate[]> {
  let batch: Candidate[] = []
  let [bytes, names] = [0, 0]
  for (const file of files) {
    bytes += file.size
    names += file.name.length + 8
    if (batch.length > 0 && (bytes > batchBytes || names > batchNames)) {
      yield batch
      batch = []
      bytes = file.size
      names = file.name.length + 8
    }
    batch.push(file)
  }
  if (batch.length > 0) yield batch
}

/** What is in the files; undefined for one that is gone or cannot be read. */
async function contents(
  batch: readonly Candidate[],
  call: Call,
  options: ShellOptions,
): Promise<[Candidate, Uint8Array | undefined][]> {
  const names = batch.map(({ name }) => name)
  const bytes = await call(contentScript, names, options)
  const end = bytes.indexOf(0)
  const sizes = parseSizes(names, new TextDecoder().decode(bytes.subarray(0, end)))
  const whole = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
  const body = bytes.subarray(end + 1)
  if (batch.length === 1) {
    return [[batch[0] as Candidate, body.length > 0 || sizes[0] === 0 ? body : undefined]]
  }
  if (whole !== body.length) {
    // A file changed while it was read, so nobody knows where the next one starts.
    const each: [Candidate, Uint8Array | undefined][] = []
    for (const file of batch) each.push(...(await contents([file], call, options)))
    return each
  }
  let at = 0
  return batch.map((file, i) => {
    const size = sizes[i]
    const content = size === undefined ? undefined : body.subarray(at, at + size)
    at += size ?? 0
    return [file, content]
  })
}

/** Undefined when it is not text, or is gone. */
function linesIn(bytes: Uint8Array | undefined, linesOf: LineMatcher, limit: number) {
  if (bytes === undefined || bytes.subarray(0, 8192).includes(0)) return undefined
  return linesOf(new TextDecoder().decode(bytes), limit)
}

/** Folder by folder: `a/b` comes before `a-b`. */
function byPath(one: Candidate, other: Candidate): number {
  const [left, right] = [one.name.split('/'), other.name.split('/')]
  for (let i = 0; i < left.length && i < right.length; i++) {
    if (left[i] !== right[i]) return (left[i] as string) < (right[i] as string) ? -1 : 1
  }
  return left.length - right.length
}
