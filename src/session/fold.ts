import type { Digest } from '../base/digest.ts'
import type { JsonObject } from '../base/json.ts'
import { type Branch, commonBranch, trunk } from './branch.ts'
import type { Chunk } from './chunk.ts'
import { callsIn } from './part.ts'
import { addUsage, noUsage, type Usage } from './usage.ts'

/**
 * What a chain knows at one of its chunks without walking back. A chunk that changes nothing here shares its
 * predecessor's fold, so a fold costs memory only where something happened.
 */
export interface Fold {
  readonly usage: Usage
  /** The part of `usage` that this history's own model calls spent, without those inside tools and effects. */
  readonly own: Usage
  readonly placement: Chunk<'placement'> | undefined
  /** The files as the last chunk that tells of them left them. */
  readonly tree: Digest | undefined
  /** Packs of the store that hold those files; none where they were not sent there. */
  readonly packs: readonly Digest[]
  /** The folder that calls since the placement worked in, where they worked in the placed one itself. */
  readonly folder: WorkedIn | undefined
  /** The last answer that asked for tools, while its results may still come. */
  readonly turn: Chunk<'assistant'> | undefined
  /** Questions that no later chunk has answered, and whose call has no result and is still wanted. */
  readonly approvals: readonly Chunk<'approval'>[]
  /** What stopped calls before they were done, each until its branch, or one that it went into, has an answer. */
  readonly stops: readonly Chunk<'error'>[]
}

/** A folder of some machine: what it was called there, and what tells it from another of that name. */
export interface WorkedIn {
  readonly path: string
  readonly id: string
}

export const emptyFold: Fold = {
  usage: noUsage,
  own: noUsage,
  placement: undefined,
  tree: undefined,
  packs: [],
  folder: undefined,
  turn: undefined,
  approvals: [],
  stops: [],
}

export function fold(before: Fold, chunk: Chunk): Fold {
  const after = foldKind(before, chunk)
  if (!('usage' in chunk) || chunk.usage === undefined) return after
  const usage = addUsage(before.usage, chunk.usage)
  const own = ownUsage(chunk)
  // Where nothing was spent inside, both are one object.
  if (own === chunk.usage && before.own === before.usage) return { ...after, usage, own: usage }
  return { ...after, usage, own: own === undefined ? before.own : addUsage(before.own, own) }
}

/** What a chunk says that its own history spent. */
function ownUsage(chunk: Chunk): Usage | undefined {
  if (chunk.kind === 'tool-result' || chunk.kind === 'effect') return undefined
  if (chunk.kind !== 'merge' || !chunk.leftOut?.some(({ inside }) => inside))
    return 'usage' in chunk ? chunk.usage : undefined
  const own = chunk.leftOut.filter(({ inside }) => !inside)
  return own.reduce((sum, { usage }) => addUsage(sum, usage), noUsage)
}

function foldKind(before: Fold, chunk: Chunk): Fold {
  switch (chunk.kind) {
    case 'placement':
      return { ...before, placement: chunk, tree: chunk.workspace?.tree, packs: [], folder: undefined }
    case 'tool-result':
      return worked(withTree(withoutQuestions(before, chunk.callId), chunk), chunk)
    case 'merge':
      return withTree(before, chunk)
    case 'assistant':
      if (callsIn(chunk.content).length > 0) return { ...endTurn(before), turn: chunk }
      return withoutStops(endTurn(before), chunk)
    case 'user':
      return endTurn(before)
    case 'approval': {
      const others = before.approvals.filter(open => open.approval !== chunk.approval)
      return { ...before, approvals: chunk.verdict === undefined ? [...others, chunk] : others }
    }
    case 'error': {
      if (!isStop(chunk)) return before
      const { stops } = withoutStops(before, chunk)
      return { ...before, stops: [...stops, chunk] }
    }
    default:
      return before
  }
}

/** What an `error` chunk says in `detail` when it ended the turn that it stands in. */
export const unfinished = Object.freeze({ turn: 'unfinished' })

/** Whether a turn ended with this error, whatever was said in it. */
export function endsTurn({ detail }: Chunk<'error'>): boolean {
  return (detail as { readonly turn?: unknown } | null | undefined)?.turn === unfinished.turn
}

/** A selector or a compressor that was stopped ended no turn: an answer before it still stands. */
function isStop(chunk: Chunk<'error'>): boolean {
  const { error, attempt } = chunk
  return endsTurn(chunk) || (attempt === undefined && (error === 'budget-spent' || error === 'max-rounds'))
}

/** An answer, or another stop, takes the place of those on its branch, on those before it and on those that were merged into it; not of a sibling's. */
function withoutStops(before: Fold, { branch }: Chunk): Fold {
  if (before.stops.length === 0) return before
  const stops = before.stops.filter(stop => areSiblings(stop.branch, branch))
  return stops.length === before.stops.length ? before : { ...before, stops }
}

/** Whether neither branch comes from the other. */
export function areSiblings(one: Branch = trunk, other: Branch = trunk): boolean {
  const common = commonBranch([one, other])
  return common !== one && common !== other
}

/** Packs of the store that hold the files which a chunk names: the trees before and after it. */
export function packsNamed({ extras }: Chunk): readonly Digest[] {
  const packs: unknown = extras?.packs
  return Array.isArray(packs) && packs.every(isDigest) ? packs : none
}

const none: readonly never[] = Object.freeze([])

function isDigest(value: unknown): value is Digest {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}

function worked(before: Fold, { ranOn }: Chunk<'tool-result'>): Fold {
  const folder = ranOn && workedIn(ranOn)
  return folder === undefined || folder.id === before.folder?.id ? before : { ...before, folder }
}

/** What `ranOn` says of the placed folder; nothing for a copy of a branch, for other backends, and before there were such ids. */
export function workedIn({ cwd, folder }: JsonObject): WorkedIn | undefined {
  return typeof cwd === 'string' && typeof folder === 'string' ? { path: cwd, id: folder } : undefined
}

function withTree(before: Fold, chunk: Chunk<'tool-result' | 'merge'>): Fold {
  const { tree } = chunk
  return tree === undefined ? before : { ...before, tree, packs: packsNamed(chunk) }
}

/** Nobody waits for the calls of a turn that is over, nor for an answer to what was asked about them. */
function endTurn(before: Fold): Fold {
  const rest = withoutQuestions(before)
  return rest.turn === undefined ? rest : { ...rest, turn: undefined }
}

/** Without the questions about a call, or about any. */
function withoutQuestions(before: Fold, callId?: string): Fold {
  if (before.approvals.length === 0) return before
  const approvals = before.approvals.filter(
    open => open.callId === undefined || (callId !== undefined && open.callId !== callId),
  )
  return approvals.length === before.approvals.length ? before : { ...before, approvals }
}
