import { diffArrays, FILE_HEADERS_ONLY, formatPatch, type StructuredPatchHunk } from 'diff'

/** Equal lines around a change that are shown. */
const context = 3
/** A file that has become another one has no patch worth reading. */
const mostEdits = 5_000
/** Lines that both texts have and that stand elsewhere. Comparing takes the square of them: about a second for so many. */
const mostMoved = 2_000

/**
 * A unified patch from one text to another; undefined where they are equal, or have too little in common. The names are those of its header.
 * Only lines that both texts have are compared in order: one that only one of them has is added or removed whatever the others are. So
 * a text that is written anew costs its length and not the square of it. Where too many stand elsewhere, all between the first and the last
 * that differ are removed and added.
 */
export function linePatch(
  names: readonly [from: string, to: string],
  old: string,
  now: string,
): string | undefined {
  const texts: Texts = [linesOf(old), linesOf(now)]
  const runs = equalRuns(texts)
  const equal = runs.reduce((sum, { length }) => sum + length, 0)
  if (texts[0].length + texts[1].length - 2 * equal > mostEdits) return undefined
  const hunks = hunksOf(texts, runs)
  if (hunks.length === 0) return undefined
  const patch = { oldFileName: names[0], newFileName: names[1], oldHeader: '', newHeader: '', hunks }
  return formatPatch(patch, FILE_HEADERS_ONLY)
}

export type Texts = readonly [old: readonly string[], now: readonly string[]]

/** Lines that are equal on both sides, from these numbers on. */
export interface Run {
  readonly old: number
  readonly now: number
  length: number
}

/** With their ends: the last one may have none. */
function linesOf(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\n)/)
}

/** In order; the last one, which may be empty, ends where the texts do. */
export function equalRuns([old, now]: Texts): readonly Run[] {
  const most = Math.min(old.length, now.length)
  let start = 0
  while (start < most && old[start] === now[start]) start++
  let end = 0
  while (end < most - start && old.at(-1 - end) === now.at(-1 - end)) end++

  const inOld = new Set(old.slice(start, old.length - end))
  const inNow = new Set(now.slice(start, now.length - end))
  const sharedOld = placesOf(old, inNow, start, end)
  const sharedNow = placesOf(now, inOld, start, end)
  const parts = diffArrays(
    sharedOld.map(line => old[line]),
    sharedNow.map(line => now[line]),
    { maxEditLength: mostMoved },
  )

  const runs: Run[] = [{ old: 0, now: 0, length: start }]
  let [a, b] = [0, 0]
  for (const { added, removed, count } of parts ?? []) {
    for (let n = 0; n < count; n++) {
      if (!added && !removed) addPair(runs, sharedOld[a] as number, sharedNow[b] as number)
      if (!added) a++
      if (!removed) b++
    }
  }
  runs.push({ old: old.length - end, now: now.length - end, length: end })
  return runs
}

/** The numbers of those lines between the equal beginning and the equal end which the other side has too. */
function placesOf(
  lines: readonly string[],
  others: ReadonlySet<string>,
  start: number,
  end: number,
): number[] {
  const places: number[] = []
  for (let line = start; line < lines.length - end; line++) {
    if (others.has(lines[line] as string)) places.push(line)
  }
  return places
}

function addPair(runs: Run[], old: number, now: number): void {
  const last = runs.at(-1) as Run
  if (last.old + last.length === old && last.now + last.length === now) last.length++
  else runs.push({ old, now, length: 1 })
}

/** What lies between the runs, with equal lines around it. Changes that are close to each other are one hunk. */
function hunksOf([old, now]: Texts, runs: readonly Run[]): StructuredPatchHunk[] {
  const hunks: StructuredPatchHunk[] = []
  let hunk: Hunk | undefined
  for (const [i, run] of runs.entries()) {
    const next = runs[i + 1]
    const [oldEnd, nowEnd] = [run.old + run.length, run.now + run.length]
    const isChange = next !== undefined && (next.old > oldEnd || next.now > nowEnd)
    const isShort = run.length <= 2 * context
    if (hunk !== undefined && (!isShort || next === undefined)) {
      hunk.add(' ', old.slice(run.old, run.old + Math.min(context, run.length)))
      hunks.push(hunk)
      hunk = undefined
    } else hunk?.add(' ', old.slice(run.old, oldEnd))
    if (!isChange) continue
    if (hunk === undefined) {
      const before = Math.min(context, run.length)
      hunk = new Hunk(oldEnd - before + 1, nowEnd - before + 1)
      hunk.add(' ', old.slice(oldEnd - before, oldEnd))
    }
    hunk.add('-', old.slice(oldEnd, next.old))
    hunk.add('+', now.slice(nowEnd, next.now))
  }
  return hunks
}

class Hunk implements StructuredPatchHunk {
  readonly oldStart: number
  readonly newStart: number
  oldLines = 0
  newLines = 0
  readonly lines: string[] = []

  constructor(oldStart: number, newStart: number) {
    this.oldStart = oldStart
    this.newStart = newStart
  }

  add(sign: ' ' | '-' | '+', lines: readonly string[]): void {
    if (sign !== '+') this.oldLines += lines.length
    if (sign !== '-') this.newLines += lines.length
    for (const line of lines) {
      if (line.endsWith('\n')) this.lines.push(sign + line.slice(0, -1))
      else this.lines.push(sign + line, '\\ No newline at end of file')
    }
  }
}
