import { diffArrays } from 'diff'
import { RathError, show } from '../base/errors.ts'
import { entryAt, filesOf } from '../sandbox/workspace/compare.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import { textOf } from '../sandbox/workspace/patch.ts'
import type { FileChange } from '../session/chunk.ts'
import type { FileHistory, FileState } from './file-history.ts'
import { renamedFrom } from './renames.ts'

/** A line of a file, and the state of the files that first had it. */
export interface TracedLine {
  readonly line: number
  readonly text: string
  readonly state: FileState
  /** The path of the file then. */
  readonly path: string
}

/** Bytes of a file that is still compared line by line. */
const largest = 8 * 1024 * 1024
/** A file that has become another one takes seconds to compare: then all of it is new. */
const maxEditLength = 20_000

/**
 * Follows each line of a file back to the state that it first appeared in, as `git blame` does it: through merges to the side that has the
 * line, and through renames. O(states + changes of the file).
 */
export function traceLines(history: FileHistory, path: string, objects: ObjectStore): TracedLine[] {
  const { last, states } = history
  const lines = last && linesAt(objects, last, path)
  if (last === undefined || lines === undefined) throw missing(history, path, objects)
  const traced: TracedLine[] = []
  const waiting = new Map<FileState, Map<string, Line[]>>()
  const pass = (state: FileState, at: string, moved: readonly Line[]) => {
    if (moved.length === 0) return
    const files = waiting.get(state) ?? new Map<string, Line[]>()
    waiting.set(state, files.set(at, [...(files.get(at) ?? []), ...moved]))
  }
  pass(
    last,
    path,
    lines.map((text, i) => ({ line: i + 1, text, here: i })),
  )
  // Parents stand before their children, so that each state is looked at once, with all the lines that reach it.
  for (const state of states.toReversed()) {
    for (const [at, open] of waiting.get(state) ?? []) {
      const left = handDown(state, at, open, objects, pass)
      for (const { line, text } of left) traced.push({ line, text, state, path: at })
    }
    waiting.delete(state)
  }
  return traced.sort((one, other) => one.line - other.line)
}

interface Line {
  /** In the file that was asked about, from 1. */
  readonly line: number
  readonly text: string
  /** In the file of the state at hand, from 0. */
  readonly here: number
}

/** Gives lines to the parents that have them, and returns the rest: those are of this state. */
function handDown(
  state: FileState,
  path: string,
  open: readonly Line[],
  objects: ObjectStore,
  pass: (state: FileState, path: string, lines: readonly Line[]) => void,
): readonly Line[] {
  const now = entryAt(objects, state.tree, path)
  let left = open
  for (const parent of state.parents) {
    if (left.length === 0) break
    const from = sourceOf(parent, state, path, objects)
    if (from === undefined) continue
    if (entryAt(objects, parent.tree, from)?.id === now?.id) {
      pass(parent, from, left)
      return []
    }
    const before = linesAt(objects, parent, from)
    const after = linesAt(objects, state, path)
    const places = before && after && unchanged(before, after)
    if (!places) continue
    const isKept = ({ here }: Line) => places.has(here)
    pass(
      parent,
      from,
      left.filter(isKept).map(line => ({ ...line, here: places.get(line.here) as number })),
    )
    left = left.filter(line => !isKept(line))
  }
  return left
}

/** Where a file was in a parent: at the same path, or where it was renamed from. */
function sourceOf(
  parent: FileState,
  state: FileState,
  path: string,
  objects: ObjectStore,
): string | undefined {
  const kind = entryAt(objects, parent.tree, path)?.kind
  if (kind === 'file' || kind === 'link') return path
  const recorded = filesRecorded(state).find(file => file.path === path && file.change === 'renamed')?.from
  return recorded ?? renamedFrom(objects, parent.tree, state.tree, path)
}

export function filesRecorded({ cause }: FileState): readonly FileChange[] {
  return cause.kind === 'call' ? (cause.chunk.files ?? []) : []
}

/** For each line that two texts share, its place in the one by its place in the other. */
function unchanged(before: string[], after: string[]): Map<number, number> | undefined {
  const changes = diffArrays(before, after, { maxEditLength })
  if (changes === undefined) return undefined
  const places = new Map<number, number>()
  let old = 0
  let now = 0
  for (const { added, removed, count } of changes) {
    if (added) now += count
    else if (removed) old += count
    else for (let i = 0; i < count; i++) places.set(now++, old++)
  }
  return places
}

function linesAt(objects: ObjectStore, { tree }: FileState, path: string): string[] | undefined {
  const entry = entryAt(objects, tree, path)
  const text = entry && textOf(objects, entry, largest)
  if (text === undefined) return undefined
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function missing({ last }: FileHistory, path: string, objects: ObjectStore): RathError {
  if (last === undefined) {
    return new RathError(
      'path-missing',
      `This session has no files: none of its tool calls recorded a workspace, so no line of ${show(path)} can be traced.`,
    )
  }
  const entry = entryAt(objects, last.tree, path)
  if (entry !== undefined) {
    return new RathError(
      'path-kind',
      `${show(path)} has no lines to trace: it is ${entry.kind === 'file' ? 'binary or very large' : `a ${entry.kind}`}.`,
    )
  }
  const name = path.split('/').at(-1)
  const near = [...filesOf(objects, last.tree)]
    .map(file => file.path)
    .filter(file => file.endsWith(`/${name}`) || file === name)
  const hint = near.length > 0 ? ` Is it ${near.slice(0, 3).join(' or ')}?` : ''
  return new RathError('path-missing', `There is no ${show(path)} in the files of this session.${hint}`, {
    data: { path },
  })
}
