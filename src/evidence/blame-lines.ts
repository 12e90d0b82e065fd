import { diffArrays } from 'diff'
import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { compareTrees, entryAt, filesOf } from '../sandbox/workspace/compare.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import { textOf } from '../sandbox/workspace/patch.ts'
import type { TreeEntry } from '../sandbox/workspace/tree.ts'
import type { FileChange } from '../session/chunk.ts'
import type { FileHistory, FileState } from './file-history.ts'

/** A line of a file, and the state of the files that first had it. */
export interface TracedLine {
  readonly line: number
  readonly text: string
  readonly state: FileState
  /** The path of the file then. */
  readonly path: string
}

/** A file that has become another one takes seconds to compare: then all of it is new. */
const maxEditLength = 20_000

/**
 * Follows each line of a file back to the state that it first appeared in, as `git blame` does it: through merges to the side that has the
 * line, and through renames. O(states + changes of the file).
 */
export function traceLines(history: FileHistory, path: string, objects: ObjectStore): TracedLine[] {
  const { last, states } = history
  const versions = new FileVersions(objects)
  const file = last && versions.at(last.tree, path)
  const lines = file && versions.lines(file)
  if (last === undefined || lines === undefined) throw missing(last, path, objects)
  const traced: TracedLine[] = []
  const waiting = new Waiting()
  waiting.add(
    last,
    path,
    lines.map((text, i) => ({ line: i + 1, text, here: i })),
  )
  // Parents stand before their children, so that each state is looked at once, with all the lines that reach it.
  for (const state of states.toReversed()) {
    for (const [at, open] of waiting.take(state)) {
      const left = handDown(state, at, open, versions, waiting)
      for (const { line, text } of left) traced.push({ line, text, state, path: at })
    }
  }
  return traced.sort((one, other) => one.line - other.line)
}

/** What the call that led to a state says it changed. */
export function filesRecorded({ cause }: FileState): readonly FileChange[] {
  return cause.kind === 'call' ? (cause.chunk.files ?? []) : []
}

interface Line {
  /** In the file that was asked about, from 1. */
  readonly line: number
  readonly text: string
  /** In the file of the state at hand, from 0. */
  readonly here: number
}

/** Lines that are to be looked for in a state, by the path of the file there. */
class Waiting {
  readonly #lines = new Map<FileState, Map<string, Line[]>>()

  add(state: FileState, path: string, lines: readonly Line[]): void {
    if (lines.length === 0) return
    const files = this.#lines.get(state) ?? new Map<string, Line[]>()
    this.#lines.set(state, files.set(path, [...(files.get(path) ?? []), ...lines]))
  }

  take(state: FileState): Iterable<[string, Line[]]> {
    const files = this.#lines.get(state)
    this.#lines.delete(state)
    return files ?? []
  }
}

/** Gives lines to the parents that have them, and returns the rest: those are of this state. */
function handDown(
  state: FileState,
  path: string,
  open: readonly Line[],
  versions: FileVersions,
  waiting: Waiting,
): readonly Line[] {
  const now = versions.at(state.tree, path)
  let left = open
  for (const parent of state.parents) {
    if (left.length === 0 || now === undefined) break
    const from = sourceOf(parent, state, path, versions)
    const then = from === undefined ? undefined : versions.at(parent.tree, from)
    if (from === undefined || then === undefined) continue
    if (then.id === now.id) {
      waiting.add(parent, from, left)
      return []
    }
    const places = unchanged(versions.lines(then), versions.lines(now))
    const kept = left.flatMap(line => {
      const here = places.get(line.here)
      return here === undefined ? [] : [{ ...line, here }]
    })
    waiting.add(parent, from, kept)
    left = left.filter(line => !places.has(line.here))
  }
  return left
}

/** Where a file was in a parent: at the same path, or where it was renamed from. */
function sourceOf(
  parent: FileState,
  state: FileState,
  path: string,
  versions: FileVersions,
): string | undefined {
  if (versions.at(parent.tree, path)) return path
  const recorded = filesRecorded(state).find(file => file.path === path && file.change === 'renamed')?.from
  return recorded ?? renamedFrom(versions.objects, parent.tree, state.tree, path)
}

/** For each line that two texts share, its place in the old one by its place in the new one. */
function unchanged(before: string[] | undefined, after: string[] | undefined): Map<number, number> {
  const places = new Map<number, number>()
  const changes = before && after && diffArrays(before, after, { maxEditLength })
  let old = 0
  let now = 0
  for (const { added, removed, count } of changes ?? []) {
    if (added) now += count
    else if (removed) old += count
    else for (let i = 0; i < count; i++) places.set(now++, old++)
  }
  return places
}

function missing(last: FileState | undefined, path: string, objects: ObjectStore): RathError {
  if (last === undefined) {
    return new RathError(
      'path-missing',
      `This session has no files: none of its tool calls recorded a workspace, so no line of ${show(path)} can be traced.`,
    )
  }
  const entry = entryAt(objects, last.tree, path)
  if (entry !== undefined) {
    const what = entry.kind === 'file' ? 'binary or very large' : `a ${entry.kind}`
    return new RathError('path-kind', `${show(path)} has no lines to trace: it is ${what}.`)
  }
  const name = path.split('/').at(-1) as string
  const files = [...filesOf(objects, last.tree)].map(file => file.path)
  const near = files.filter(file => file === name || file.endsWith(`/${name}`)).slice(0, 3)
  const hint = near.length > 0 ? ` Is it ${near.join(' or ')}?` : ''
  return new RathError('path-missing', `There is no ${show(path)} in the files of this session.${hint}`, {
    data: { path },
  })
}

/** Bytes of a file that is still compared line by line. */
const largestTraced = 8 * 1024 * 1024

/** Files of trees, each looked up once: neighbouring states ask for the same. */
class FileVersions {
  readonly objects: ObjectStore
  readonly #entries = new Map<string, TreeEntry | undefined>()
  /** The lines of the last two files, which are those that are compared. */
  readonly #lines = new Map<Digest, string[] | undefined>()

  constructor(objects: ObjectStore) {
    this.objects = objects
  }

  /** A file or a link; undefined when there is none. */
  at(tree: Digest, path: string): TreeEntry | undefined {
    const key = `${tree} ${path}`
    if (!this.#entries.has(key)) this.#entries.set(key, entryAt(this.objects, tree, path))
    const entry = this.#entries.get(key)
    return entry?.kind === 'file' || entry?.kind === 'link' ? entry : undefined
  }

  /** Undefined when it has none: it is binary, or very large. */
  lines(entry: TreeEntry): string[] | undefined {
    const known = this.#lines.get(entry.id)
    const lines = known ?? linesOf(textOf(this.objects, entry, largestTraced))
    this.#lines.delete(entry.id)
    this.#lines.set(entry.id, lines)
    for (const oldest of this.#lines.keys()) if (this.#lines.size > 2) this.#lines.delete(oldest)
    return lines
  }
}

function linesOf(text: string | undefined): string[] | undefined {
  const lines = text?.split('\n')
  if (lines?.at(-1) === '') lines.pop()
  return lines
}

/** Half of the lines, as git has it. */
const alikeEnough = 0.5
const mostCandidates = 200
/** Bytes of a file that is still looked at for a rename. */
const largestRenamed = 1024 * 1024

/**
 * Where a file that is new in a tree came from: one that went in the same step, with the same content or at least half of its lines.
 * Undefined for a file that has no such origin.
 */
function renamedFrom(objects: ObjectStore, before: Digest, after: Digest, path: string): string | undefined {
  const now = entryAt(objects, after, path)
  if (now?.kind !== 'file') return undefined
  const gone: { readonly path: string; readonly entry: TreeEntry }[] = []
  for (const { path, before: entry, after: left } of compareTrees(objects, before, after)) {
    if (entry?.kind !== 'file' || left !== undefined) continue
    if (entry.id === now.id) return path
    if (gone.length < mostCandidates) gone.push({ path, entry })
  }
  const lines = fullLinesOf(objects, now)
  if (lines === undefined) return undefined
  const rated = gone.map(({ path, entry }) => ({ path, share: likeness(lines, fullLinesOf(objects, entry)) }))
  const best = rated.reduce((one, other) => (other.share > one.share ? other : one), { path: '', share: 0 })
  return best.share >= alikeEnough ? best.path : undefined
}

function fullLinesOf(objects: ObjectStore, entry: TreeEntry): readonly string[] | undefined {
  return textOf(objects, entry, largestRenamed)
    ?.split('\n')
    .filter(line => line.trim() !== '')
}

/** The share of the longer text that is in both, line by line, whatever their order. */
function likeness(one: readonly string[], other: readonly string[] | undefined): number {
  if (other === undefined || one.length === 0 || other.length === 0) return 0
  const counts = new Map<string, number>()
  for (const line of one) counts.set(line, (counts.get(line) ?? 0) + 1)
  let shared = 0
  for (const line of other) {
    const left = counts.get(line) ?? 0
    if (left === 0) continue
    counts.set(line, left - 1)
    shared++
  }
  return shared / Math.max(one.length, other.length)
}
