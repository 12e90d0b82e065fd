import { equalRuns } from './line-patch.ts'

export interface MergedLines {
  readonly content: Buffer
  /** Overlaps, each between markers in `content`. */
  readonly conflicts: number
}

export interface Sides {
  readonly base: Uint8Array
  readonly ours: Uint8Array
  readonly theirs: Uint8Array
}

/** What stands behind the markers. */
export interface Labels {
  readonly ours: string
  readonly base: string
  readonly theirs: string
}

/**
 * Three versions of a text, merged by lines in this process, as `git merge-file` does it: changes that touch each other conflict, equal
 * changes do not, and a conflict holds no line that both sides agree on. Bytes are kept as they are, whatever their encoding.
 */
export function mergeLines(sides: Sides, labels: Labels): MergedLines {
  const texts = { base: linesOf(sides.base), ours: linesOf(sides.ours), theirs: linesOf(sides.theirs) }
  const refined = regionsOf(texts).flatMap(region => ('lines' in region ? [region] : refine(region, texts)))
  const regions = joinClose(refined)
  const out: string[] = []
  let conflicts = 0
  for (const region of regions) {
    if ('lines' in region) out.push(...region.lines)
    else {
      conflicts++
      out.push(...marked(region, texts, labels))
    }
  }
  return { content: Buffer.from(out.join(''), 'latin1'), conflicts }
}

type Texts = Readonly<Record<'base' | 'ours' | 'theirs', readonly string[]>>

/** Lines `at` to `end` of one text are lines `by` to `byEnd` of the other. Either may be none. */
interface Change {
  readonly at: number
  readonly end: number
  readonly by: number
  readonly byEnd: number
}

interface Clean {
  readonly lines: readonly string[]
}

interface Overlap {
  readonly ours: readonly [from: number, to: number]
  readonly theirs: readonly [from: number, to: number]
}

type Region = Clean | Overlap

/** With their ends: the last one may have none. One character a byte. */
function linesOf(bytes: Uint8Array): string[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return text === '' ? [] : text.split(/(?<=\n)/)
}

/** Goes through the changes of both sides in the order of the base. */
function regionsOf({ base, ours, theirs }: Texts): Region[] {
  const regions: Region[] = []
  const [mine, other] = [changesOf(base, ours), changesOf(base, theirs)]
  let [m, o, at] = [0, 0, 0]
  const keep = (lines: readonly string[]) => {
    if (lines.length > 0) regions.push({ lines })
  }
  while (m < mine.length || o < other.length) {
    const [a, b] = [mine[m], other[o]]
    // Changes that touch are one: without an equal line between them nobody can tell their order.
    if (b === undefined || (a !== undefined && a.end < b.at)) {
      keep(base.slice(at, a?.at))
      keep(ours.slice(a?.by, a?.byEnd))
      at = a?.end as number
      m++
    } else if (a === undefined || b.end < a.at) {
      keep(base.slice(at, b.at))
      keep(theirs.slice(b.by, b.byEnd))
      at = b.end
      o++
    } else {
      let end = Math.max(a.end, b.end)
      const [firstMine, firstOther] = [m++, o++]
      for (;;) {
        if ((mine[m]?.at ?? Number.POSITIVE_INFINITY) <= end) end = Math.max(end, (mine[m++] as Change).end)
        else if ((other[o]?.at ?? Number.POSITIVE_INFINITY) <= end)
          end = Math.max(end, (other[o++] as Change).end)
        else break
      }
      const start = Math.min(a.at, b.at)
      keep(base.slice(at, start))
      regions.push({
        ours: spanOf(mine.slice(firstMine, m), start, end),
        theirs: spanOf(other.slice(firstOther, o), start, end),
      })
      at = end
    }
  }
  keep(base.slice(at))
  return regions
}

/** What lines `start` to `end` of the base have become. */
function spanOf(changes: readonly Change[], start: number, end: number): [number, number] {
  const [first, last] = [changes[0] as Change, changes.at(-1) as Change]
  return [first.by - (first.at - start), last.byEnd + (end - last.end)]
}

/** An overlap without the lines that both sides have in common. */
function refine(
  { ours: [from, to], theirs: [otherFrom, otherTo] }: Overlap,
  { ours, theirs }: Texts,
): Region[] {
  const [mine, other] = [ours.slice(from, to), theirs.slice(otherFrom, otherTo)]
  const regions: Region[] = []
  let at = 0
  for (const change of changesOf(mine, other)) {
    if (change.at > at) regions.push({ lines: mine.slice(at, change.at) })
    regions.push({
      ours: [from + change.at, from + change.end],
      theirs: [otherFrom + change.by, otherFrom + change.byEnd],
    })
    at = change.end
  }
  if (at < mine.length) regions.push({ lines: mine.slice(at) })
  return regions
}

/** Conflicts with no more than three lines between them, or none that holds a letter or a digit, are one. */
function joinClose(regions: readonly Region[]): Region[] {
  const joined: Region[] = []
  for (const region of regions) {
    const [last, between] = [joined.at(-2), joined.at(-1)]
    const isClose = between !== undefined && 'lines' in between && isShort(between.lines)
    if (!('lines' in region) && last !== undefined && !('lines' in last) && isClose) {
      joined.splice(-2, 2, {
        ours: [last.ours[0], region.ours[1]],
        theirs: [last.theirs[0], region.theirs[1]],
      })
    } else joined.push(region)
  }
  return joined
}

function isShort(lines: readonly string[]): boolean {
  return lines.length <= 3 || !lines.some(line => /[0-9a-z]/i.test(line))
}

function* marked({ ours, theirs }: Overlap, texts: Texts, labels: Labels): Generator<string> {
  const end = isCrlf(ours, theirs, texts) ? '\r\n' : '\n'
  yield `<<<<<<< ${latin(labels.ours)}${end}`
  yield* whole(texts.ours.slice(...ours), end)
  yield `=======${end}`
  yield* whole(texts.theirs.slice(...theirs), end)
  yield `>>>>>>> ${latin(labels.theirs)}${end}`
}

function* whole(lines: readonly string[], end: string): Generator<string> {
  for (const line of lines) yield line.endsWith('\n') ? line : line + end
}

const latin = (text: string) => Buffer.from(text).toString('latin1')

function isCrlf(ours: Overlap['ours'], theirs: Overlap['theirs'], texts: Texts): boolean {
  return (
    lineEnd(texts.ours, Math.max(0, ours[0] - 1)) !== 'lf' &&
    lineEnd(texts.theirs, Math.max(0, theirs[0] - 1)) !== 'lf' &&
    lineEnd(texts.base, 0) === 'crlf'
  )
}

function lineEnd(lines: readonly string[], at: number): 'crlf' | 'lf' | undefined {
  const line = lines[at]
  if (line === undefined) return undefined
  if (line.endsWith('\n')) return line.endsWith('\r\n') ? 'crlf' : 'lf'
  return at === 0 ? undefined : lineEnd(lines, at - 1)
}

/** In order, none touching another. A change that can stand at several places stands at the last. */
function changesOf(from: readonly string[], to: readonly string[]): Change[] {
  // One for each line that the other text has not, and a zero behind the last.
  const [a, b] = [
    new Uint8Array(from.length + 1).fill(1, 0, from.length),
    new Uint8Array(to.length + 1).fill(1, 0, to.length),
  ]
  for (const { old, now, length } of equalRuns([from, to])) {
    a.fill(0, old, old + length)
    b.fill(0, now, now + length)
  }
  slide(from, a, b)
  slide(to, b, a)
  const changes: Change[] = []
  let [i, j] = [0, 0]
  while (i < from.length || j < to.length) {
    if (!a[i] && !b[j]) {
      i++
      j++
      continue
    }
    const [at, by] = [i, j]
    while (a[i]) i++
    while (b[j]) j++
    changes.push({ at, end: i, by, byEnd: j })
  }
  return changes
}

/**
 * Moves each group of changed lines down as far as it goes, or to the last place where the other text has a group too. A line that was
 * inserted among equal ones then stands at one place, whichever of them a comparison took for new.
 */
function slide(lines: readonly string[], own: Uint8Array, other: Uint8Array): void {
  // Each unchanged line ends a group on both sides, which may be empty: `there` is the end of the group that stands beside this one.
  let [start, end] = [0, behind(own, 0)]
  let there = behind(other, 0)
  for (;;) {
    let size = 0
    while (end > start && end - start !== size) {
      size = end - start
      while (start > 0 && lines[start - 1] === lines[end - 1]) {
        own[--start] = 1
        own[--end] = 0
        start = before(own, start)
        there = before(other, there) - 1
      }
      let meeting = other[there - 1] ? end : -1
      while (end < lines.length && lines[start] === lines[end]) {
        own[start++] = 0
        own[end] = 1
        end = behind(own, end)
        there = behind(other, there + 1)
        if (other[there - 1]) meeting = end
      }
      if (end - start !== size) continue
      while (end > meeting && meeting >= 0) {
        own[--start] = 1
        own[--end] = 0
        there = before(other, there) - 1
      }
    }
    if (end >= lines.length) return
    start = end + 1
    end = behind(own, start)
    there = behind(other, there + 1)
  }
}

/** The end of the group that begins at a place. */
function behind(marks: Uint8Array, at: number): number {
  let here = at
  while (marks[here]) here++
  return here
}

/** The beginning of the group that ends at a place. */
function before(marks: Uint8Array, at: number): number {
  let here = at
  while (marks[here - 1]) here--
  return here
}
