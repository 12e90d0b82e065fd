import { type Dirent, fstatSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { RathError, show } from '../../base/errors.ts'
import { globMatcher } from '../glob.ts'
import type { SearchMatch, SearchQuery, SearchResult } from '../spec.ts'
import { Breath } from '../workspace/breath.ts'
import { readWhole } from './bytes.ts'
import { hold } from './held.ts'
import { type LineMatcher, lineMatcher } from './line-matcher.ts'
import type { WorkspacePaths } from './paths.ts'

const usualLimit = 100
/** Larger files are data, and are not read whole to look for a word. */
const largest = 10 * 1024 * 1024
/** Characters of a matching line that are shown. */
const lineLength = 500
/** Full of files that nobody means when they search a project. */
const unsearched = new Set(['.git', 'node_modules'])

/** Searches a folder or one file, by its resolved path. */
export async function searchFiles(
  { glob, text, regex = false, limit = usualLimit, signal }: SearchQuery,
  start: string,
  paths: WorkspacePaths,
): Promise<SearchResult> {
  if (glob === undefined && text === undefined) {
    throw new RathError('invalid-argument', 'A search needs a glob for paths, or a text to find in files.')
  }
  if (!(limit >= 1)) throw new RathError('invalid-argument', `limit is at least 1, not ${show(limit)}.`)
  const fits = glob === undefined ? () => true : globMatcher(glob)
  const linesOf = text === undefined ? undefined : lineMatcher(text, regex)
  const matches: SearchMatch[] = []
  let skipped = 0
  const hidden = paths.hidden === undefined ? undefined : join(paths.root, paths.hidden)
  const breath = new Breath(signal)
  for await (const file of filesUnder(paths, start, hidden, breath)) {
    if (breath.due) await breath.take()
    const inside = file === start ? basename(file) : file.slice(start.length + 1)
    if (!fits(inside)) continue
    const path = paths.relative(file)
    if (linesOf === undefined) matches.push({ path })
    else {
      const found = await linesIn(paths, file, linesOf, limit + 1 - matches.length)
      if (found === undefined) skipped++
      else for (const { line, text } of found) matches.push({ path, line, text: text.slice(0, lineLength) })
    }
    if (matches.length > limit) return { matches: matches.slice(0, limit), truncated: true, skipped }
  }
  return { matches, truncated: false, skipped }
}

/** Undefined when the file is not text, or too large, or gone by now. */
async function linesIn(paths: WorkspacePaths, file: string, linesOf: LineMatcher, limit: number) {
  const bytes = await contentOf(paths, file)
  if (bytes === undefined || bytes.subarray(0, 8192).includes(0)) return undefined
  return linesOf(bytes.toString('utf8'), limit)
}

async function contentOf(paths: WorkspacePaths, file: string): Promise<Buffer | undefined> {
  try {
    using held = hold(paths, file, 'file')
    const { size } = fstatSync(held.fd)
    return size > largest ? undefined : await readWhole(held.fd, size)
  } catch {
    return undefined
  }
}

/**
 * In the order of the paths. Regular files only; a folder that cannot be read, or was replaced meanwhile, is left out. Each folder is read
 * without letting others go first: a thousand small ones are quicker that way than one promise each.
 */
async function* filesUnder(
  paths: WorkspacePaths,
  path: string,
  hidden: string | undefined,
  breath: Breath,
): AsyncGenerator<string> {
  if (!isFolder(paths, path)) {
    yield path
    return
  }
  const open = entriesOf(readFolder(paths, path))
    .map(entry => ({ entry, at: path }))
    .reverse()
  for (let next = open.pop(); next; next = open.pop()) {
    if (breath.due) await breath.take()
    const here = join(next.at, next.entry.name)
    if (here === hidden) continue
    if (next.entry.isFile()) yield here
    else if (next.entry.isDirectory() && !unsearched.has(next.entry.name)) {
      const inner = entriesOf(readFolder(paths, here))
      for (const entry of inner.reverse()) open.push({ entry, at: here })
    }
  }
}

function isFolder(paths: WorkspacePaths, path: string): boolean {
  using held = hold(paths, path, 'entry')
  return fstatSync(held.fd).isDirectory()
}

/** The names in the folder that is open, and not in whatever its path leads to by now: a link there would tell names of files outside. */
function readFolder(paths: WorkspacePaths, path: string): Dirent[] {
  try {
    using held = hold(paths, path, 'folder')
    return readdirSync(held.path, { withFileTypes: true })
  } catch {
    return []
  }
}

function entriesOf(entries: Dirent[]): Dirent[] {
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1))
}
