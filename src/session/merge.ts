import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { commonAncestor } from './ancestor.ts'
import { commonBranch } from './branch.ts'
import {
  backwards,
  chunkAt,
  chunksFrom,
  copyOf,
  isLinked,
  lengthOf,
  link,
  previousOf,
  relink,
} from './chain.ts'
import type { Chunk, ChunkBody, ChunkInput, LeftOutChunk, MergedBranch } from './chunk.ts'
import type { OnConflict } from './files.ts'
import { identityOf } from './identity.ts'
import { joinFiles } from './join-files.ts'
import { commonLane, rootLane } from './lane.ts'
import { lineage, type OperationOptions } from './lineage.ts'
import { parseChunk, parseRecordedChunk } from './parse.ts'
import { areApart, placementAt } from './placement.ts'
import { anchored } from './summary.ts'
import { addUsage, noUsage, type Usage } from './usage.ts'
import { linkAll, type SessionValue, type Side, sinceOf } from './value.ts'

/** Decides what follows the shared history: chunks of the sides, new chunks, or both. */
export type Choose = (
  base: Chunk | undefined,
  sides: readonly Side[],
) => readonly (Chunk | ChunkInput)[] | Promise<readonly (Chunk | ChunkInput)[]>

/**
 * Joins sessions behind their shared history, which is kept once. Linear in what the sessions have of their own.
 * The first side's chunks stay the objects they are; the others' are linked in behind them with their origin.
 */
export async function merge(
  values: readonly SessionValue[],
  policy: 'concat' | 'ours' | 'theirs' | Choose,
  options: OperationOptions = {},
  onConflict: OnConflict = 'refuse',
): Promise<SessionValue> {
  const [ours, ...others] = values
  if (ours === undefined || others.length === 0) {
    throw new RathError('merge-nothing', 'There is nothing to merge with: pass at least one other session.')
  }
  const isApart = policy === 'concat' && areApart(values.map(value => value.tip))
  if (policy === 'theirs') areApart(others.map(value => value.tip))
  const base = sharedBy(values)
  const sides = values.map(value => ({ value, chunks: chunksFrom(value.tip, lengthOf(base)) }))
  const chosen = await choose(policy, base, sides)
  const lane = commonLane(values.map(value => value.lineage.lane ?? rootLane))
  const files = await joinFiles(base, sidesOf(policy, sides), lane, onConflict)

  const from = lineage(
    'merge',
    values.map(value => value.id),
    options,
    lane,
    sinceOf(ours),
  )
  const branch = commonBranch(values.map(value => value.branch))
  // What a fixed policy chose are the sides' own chunks; what a function returned may be anything.
  const ready =
    typeof policy === 'string' ? (chosen as readonly Chunk[]) : prepare(base, chosen, sides, from.at)
  const counted = new CountedUsage(ready.filter(isLinked))
  const joined = join(base, ready, counted, branch)
  const name = typeof policy === 'string' ? policy : 'function'
  const record = parseChunk(
    {
      kind: 'merge',
      branches: sides.map(describe),
      ancestor: base?.id ?? null,
      policy: name,
      ...files,
      ...(options.by !== undefined && { by: options.by }),
      ...counted.leftOut(sides.flatMap(side => side.chunks)),
    },
    from.at,
  )
  // What was joined lies where ours is, whichever placement comes last in the joined history.
  const placed = isApart ? placementAt(values.find(value => placementAt(value.tip))?.tip) : undefined
  const back = placed && parseChunk({ kind: 'placement', ...placed }, from.at)
  const tip = linkAll(joined, back ? [back, record] : [record], branch)
  const port = values.map(value => value.files).find(one => one !== undefined)
  return { id: newId(), tip, branch, lineage: from, since: ours.since, files: port }
}

/** The sides whose files count. */
function sidesOf(policy: 'concat' | 'ours' | 'theirs' | Choose, sides: readonly Side[]): readonly Side[] {
  if (policy === 'ours') return sides.slice(0, 1)
  return policy === 'theirs' ? sides.slice(1) : sides
}

/** The history that all of them share. */
function sharedBy(values: readonly SessionValue[]): Chunk | undefined {
  let base = values[0]?.tip
  for (const value of values.slice(1)) base = commonAncestor(base, value.tip)
  return base
}

async function choose(
  policy: 'concat' | 'ours' | 'theirs' | Choose,
  base: Chunk | undefined,
  sides: readonly Side[],
): Promise<readonly (Chunk | ChunkInput)[]> {
  switch (policy) {
    case 'concat':
      return sides.flatMap(side => side.chunks)
    case 'ours':
      return sides[0]?.chunks ?? []
    case 'theirs':
      return sides.slice(1).flatMap(side => side.chunks)
  }
  const chosen: unknown = await policy(base, sides)
  if (!Array.isArray(chosen)) {
    throw new RathError(
      'invalid-argument',
      `A merge policy must return an array of chunks, not ${show(chosen)}.`,
    )
  }
  return chosen
}

/** Checks what was chosen and parses what is new, before anything is linked. */
function prepare(
  base: Chunk | undefined,
  chosen: readonly (Chunk | ChunkInput)[],
  sides: readonly Side[],
  at: number,
): (Chunk | ChunkBody)[] {
  return chosen.map((chunk, i) => {
    if (!isLinked(chunk)) {
      const body = parseChunk(chunk, at, `merged chunk ${i}`)
      return body.kind === 'compress' ? anchored(body, known(base, sides)) : body
    }
    if (sides.some(side => isOwn(side, chunk, base))) return chunk
    throw new RathError(
      'foreign-chunk',
      `Merged chunk ${i} (${chunk.kind}) is not one that the branches added after their shared history; ` +
        'return chunks of the branches, or new ones without an id.',
    )
  })
}

/** Links chunks behind the base, each once. */
function join(
  base: Chunk | undefined,
  chunks: readonly (Chunk | ChunkBody)[],
  counted: CountedUsage,
  branch: string,
): Chunk | undefined {
  const linked = new Set<Digest>()
  let tip = base
  for (const chunk of chunks) {
    if (!isLinked(chunk)) {
      tip = linkAll(tip, [chunk], branch)
      continue
    }
    const identity = identityOf(chunk)
    if (linked.has(identity)) continue
    linked.add(identity)
    const recounted = chunk.kind === 'merge' ? counted.recount(chunk) : undefined
    if (recounted) tip = copyOf(chunk, link(tip, recounted))
    else tip = previousOf(chunk) === tip ? chunk : relink(tip, chunk)
  }
  return tip
}

function* known(base: Chunk | undefined, sides: readonly Side[]): Generator<Chunk> {
  for (const side of sides) yield* side.chunks
  yield* backwards(base)
}

function isOwn(side: Side, chunk: Chunk, base: Chunk | undefined): boolean {
  const { tip } = side.value
  if (tip === undefined || chunk.index > tip.index || chunk.index < lengthOf(base)) return false
  return chunkAt(tip, chunk.index) === chunk
}

function describe({ value, chunks }: Side): MergedBranch {
  return { session: value.id, head: value.tip?.id ?? null, branch: value.branch, chunks: chunks.length }
}

/**
 * Whose usage a session counts already. A merge that leaves chunks out keeps what they cost in its own record; when such a
 * chunk is merged after all, or two merges left out the same one, it must still count once.
 */
class CountedUsage {
  readonly #counted = new Set<Digest>()

  constructor(kept: Iterable<Chunk>) {
    for (const chunk of kept) if (chunk.kind !== 'merge') this.#counted.add(identityOf(chunk))
  }

  /** The record of an earlier merge without what counts elsewhere; undefined when it can stay as it is. */
  recount(merge: Chunk<'merge'>): ChunkBody | undefined {
    const before = merge.leftOut ?? []
    const left = this.#new(before)
    if (left.length === before.length) return undefined
    const { usage: _, leftOut: __, ...rest } = merge
    // Parsed like any chunk, so that it is frozen and in canonical order all the way down.
    return parseRecordedChunk({ ...rest, ...spentOn(left), origin: identityOf(merge) }, 'merge record')
  }

  /** For the record of this merge: what the sides spent that counts nowhere yet. */
  leftOut(sides: Iterable<Chunk>): { usage?: Usage; leftOut?: readonly LeftOutChunk[] } {
    const entries: LeftOutChunk[] = []
    for (const chunk of sides) entries.push(...this.#new(spentBy(chunk)))
    return spentOn(entries)
  }

  #new(entries: readonly LeftOutChunk[]): LeftOutChunk[] {
    const left = entries.filter(entry => !this.#counted.has(entry.chunk))
    for (const entry of left) this.#counted.add(entry.chunk)
    return left
  }
}

function spentBy(chunk: Chunk): readonly LeftOutChunk[] {
  if (chunk.kind === 'merge') return chunk.leftOut ?? []
  if (!('usage' in chunk) || chunk.usage === undefined) return []
  const isInside = chunk.kind === 'tool-result' || chunk.kind === 'effect'
  return [{ chunk: identityOf(chunk), usage: chunk.usage, ...(isInside && { inside: true as const }) }]
}

function spentOn(entries: readonly LeftOutChunk[]): { usage?: Usage; leftOut?: readonly LeftOutChunk[] } {
  if (entries.length === 0) return {}
  return { usage: entries.reduce((sum, { usage }) => addUsage(sum, usage), noUsage), leftOut: entries }
}
