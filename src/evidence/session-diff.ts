import type { Digest } from '../base/digest.ts'
import { changesBetween } from '../sandbox/workspace/changes.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import { commonAncestor } from '../session/ancestor.ts'
import { chunksFrom, foldAt, lengthOf } from '../session/chain.ts'
import type { Chunk, FileChange } from '../session/chunk.ts'
import { baseTree } from '../session/join-files.ts'
import { type Session, valueFrom } from '../session/session.ts'
import { addUsage, noUsage, type Usage } from '../session/usage.ts'
import type { Side } from '../session/value.ts'
import { oneLine } from './one-line.ts'

/** How two sessions differ since the last chunk that they share. */
export interface SessionComparison {
  /** Undefined when they are unrelated. */
  readonly ancestor: Digest | undefined
  readonly shared: number
  readonly ours: SideComparison
  readonly theirs: SideComparison
  /** How the files of theirs differ from those of ours; undefined where files were not given or not recorded. */
  readonly files: readonly FileChange[] | undefined
}

export interface SideComparison {
  readonly session: string
  readonly branch: string
  readonly chunks: readonly Chunk[]
  /** How its files differ from those of the ancestor; without files, what its tool calls say they changed. */
  readonly files: readonly FileChange[]
  /** Spent since the ancestor. */
  readonly usage: Usage
  /** The files as it left them. */
  readonly tree: Digest | undefined
}

/** `objects` is where the files were kept; without it files are told from what the tool calls recorded. */
export async function compareSessions(
  ours: Session,
  theirs: Session,
  objects?: ObjectStore,
): Promise<SessionComparison> {
  const [left, right] = [valueFrom(ours), valueFrom(theirs)]
  const base = commonAncestor(left.tip, right.tip)
  const shared = lengthOf(base)
  const sides = [left, right].map(value => ({ value, chunks: chunksFrom(value.tip, shared) }))
  const from = baseTree(base, sides)
  const [one, other] = (await Promise.all(sides.map(side => compared(side, from, objects)))) as [
    SideComparison,
    SideComparison,
  ]
  const isKnown = objects && one.tree !== undefined && other.tree !== undefined
  const files = isKnown ? await changesBetween(objects, one.tree as Digest, other.tree as Digest) : undefined
  return { ancestor: base?.id, shared, ours: one, theirs: other, files }
}

async function compared(
  { value, chunks }: Side,
  from: Digest | undefined,
  objects: ObjectStore | undefined,
): Promise<SideComparison> {
  const { tree } = foldAt(value.tip)
  const isKnown = objects && from !== undefined && tree !== undefined
  const files = isKnown ? await changesBetween(objects, from, tree) : recorded(chunks)
  return { session: value.id, branch: value.branch, chunks, files, usage: spent(chunks), tree }
}

function recorded(chunks: readonly Chunk[]): FileChange[] {
  const last = new Map<string, FileChange>()
  for (const chunk of chunks)
    if (chunk.kind === 'tool-result') for (const file of chunk.files ?? []) last.set(file.path, file)
  return [...last.values()]
}

function spent(chunks: readonly Chunk[]): Usage {
  return chunks.reduce<Usage>(
    (sum, chunk) => ('usage' in chunk && chunk.usage ? addUsage(sum, chunk.usage) : sum),
    noUsage,
  )
}

export function printSessionDiff({ ancestor, shared, ours, theirs, files }: SessionComparison): string {
  const common = ancestor
    ? `${shared} chunks in common, up to ${ancestor.slice(0, 12)}`
    : 'nothing in common: the sessions are unrelated'
  const between = files ? ['files, from the first to the second', ...files.map(fileLine)] : []
  return [common, ...sideLines('<', ours), ...sideLines('>', theirs), ...between].join('\n')
}

function sideLines(mark: string, { session, branch, chunks, files, usage }: SideComparison): string[] {
  const cost = usage.cost === undefined ? '' : `, $${usage.cost.toFixed(4)}`
  const name = branch ? ` on ${oneLine(branch)}` : ''
  return [
    `${mark} ${session}${name}: ${chunks.length} chunks, ${usage.totalTokens} tokens${cost}`,
    ...chunks.map(chunk => `${mark} ${chunkLine(chunk)}`),
    ...files.map(file => `${mark} ${fileLine(file)}`),
  ]
}

function chunkLine(chunk: Chunk): string {
  const { index, kind, by, text } = chunk
  const calls =
    chunk.kind === 'assistant'
      ? chunk.content.flatMap(part => (part.type === 'tool-call' ? [`→ ${part.name}`] : []))
      : []
  const said = [by && `${by}:`, text, ...calls].filter(Boolean).join(' ')
  return `${String(index).padStart(4)} ${kind.padEnd(11)} ${oneLine(said, 100)}`
}

function fileLine({ change, path, from }: FileChange): string {
  return `     ${change.padEnd(8)} ${oneLine(from === undefined ? path : `${from} → ${path}`)}`
}
