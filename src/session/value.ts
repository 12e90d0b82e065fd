import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { type Branch, branchOff, checkLabel, trunk } from './branch.ts'
import {
  backwards,
  chunkAt,
  copyOf,
  isLinked,
  knownId,
  lengthOf,
  link,
  newLink,
  previousOf,
} from './chain.ts'
import type { Chunk, ChunkBody, ChunkInput } from './chunk.ts'
import type { SessionFiles } from './files.ts'
import { identityOf } from './identity.ts'
import { laneOff, placedOn, rootLane } from './lane.ts'
import { appendedTo, type Lineage, lineage, type OperationOptions } from './lineage.ts'
import { parseChunk, withField } from './parse.ts'
import { anchored } from './summary.ts'

/** Everything a session is. The operations below take one and return another; `Session` is the object that carries both. */
export interface SessionValue {
  readonly id: string
  readonly tip: Chunk | undefined
  readonly branch: Branch
  readonly lineage: Lineage
  /** The nearest session, itself or before it, that may have been kept: created, read, or made by a call. */
  readonly since?: string | undefined
  /** How its files are read and joined, once it went through a runtime. No part of the record. */
  readonly files?: SessionFiles | undefined
}

/** One of several sessions that are looked at together, with the chunks it has of its own. */
export interface Side {
  readonly value: SessionValue
  readonly chunks: readonly Chunk[]
}

export function create(input: ChunkInput | undefined, options: OperationOptions = {}): SessionValue {
  const from = lineage('create', [], options)
  const tip = input && link(undefined, parseChunk(input, from.at))
  const id = newId()
  return { id, tip, branch: trunk, lineage: from, since: id }
}

/** Adds chunks at the end. Nothing is added unless every one of them can be. */
export function append(
  value: SessionValue,
  inputs: readonly unknown[],
  options?: OperationOptions,
): SessionValue {
  const { lane } = value.lineage
  const since = sinceOf(value)
  const from = options
    ? lineage('append', [value.id], options, lane, since)
    : appendedTo(value.id, lane, since)
  const tip = tipAfter(value, inputs, from.at)
  return { id: newId(), tip, branch: value.branch, lineage: from, since: value.since, files: value.files }
}

/** Adds a chunk of another history. For merges the two are one chunk: kept once, and its cost counted once. */
export function appendCopy(value: SessionValue, chunk: Chunk): SessionValue {
  const { branch: _, ...body } = { ...chunk } as ChunkBody
  const copy = withField(body as ChunkBody, { origin: identityOf(chunk) })
  const tip = copyOf(chunk, linkOn(value.tip, copy, value.branch))
  const from = appendedTo(value.id, value.lineage.lane, sinceOf(value))
  return { id: newId(), tip, branch: value.branch, lineage: from, since: value.since, files: value.files }
}

/** The last chunk of a value to which these are added. */
export function tipAfter(value: SessionValue, inputs: readonly unknown[], at: number): Chunk | undefined {
  if (inputs.length === 1) return linkOn(value.tip, bodyOf(value, inputs[0], at, 'chunk'), value.branch)
  const bodies = inputs.map((input, i) => bodyOf(value, input, at, `chunk ${i}`))
  return linkAll(value.tip, bodies, value.branch)
}

/** Adds where the session works from here on. */
export function place(value: SessionValue, input: ChunkInput, options: OperationOptions): SessionValue {
  const placed = append(value, [input], options)
  const lane = placedOn(value.lineage.lane ?? rootLane, placed.id)
  return {
    ...placed,
    lineage: lineage('to', [value.id], { ...options, at: placed.lineage.at }, lane, sinceOf(value)),
  }
}

/** What the lineage of a child says besides its parent, when that one may never be kept. */
export function sinceOf({ id, since }: SessionValue): string | undefined {
  return since === id ? undefined : since
}

function bodyOf(value: SessionValue, input: unknown, at: number, name: string): ChunkBody {
  if (isLinked(input)) throw foreign(name)
  const body = parseChunk(input, at, name, newLink)
  return body.kind === 'compress' ? anchored(body, backwards(value.tip)) : body
}

export function linkAll(
  tip: Chunk | undefined,
  bodies: readonly ChunkBody[],
  branch: Branch,
): Chunk | undefined {
  let last = tip
  for (const body of bodies) last = linkOn(last, body, branch)
  return last
}

function linkOn(tip: Chunk | undefined, body: ChunkBody, branch: Branch): Chunk {
  return link(tip, branch === trunk ? body : withField(body, { branch }))
}

export function fork(
  value: SessionValue,
  label: string | undefined,
  ordinal: number,
  options: OperationOptions,
  workspace?: 'own' | 'shared',
): SessionValue {
  if (label !== undefined) checkLabel(label)
  const branch = branchOff(value.branch, label, ordinal)
  const named = label === undefined ? options : { ...options, label }
  const id = newId()
  const lane = laneOff(value.lineage.lane ?? rootLane, id, workspace)
  return { ...value, id, branch, lineage: lineage('fork', [value.id], named, lane, sinceOf(value)) }
}

export function detach(value: SessionValue, options: OperationOptions): SessionValue {
  const id = newId()
  return { ...value, id, lineage: lineage('detach', [], options, value.lineage.lane), since: id }
}

/**
 * The session as it was at a chunk. It stays on its branch: going on from there equals never having gone further. Its lane is a new one,
 * as its files are those of that time.
 */
export function rewind(value: SessionValue, to: string | number, options: OperationOptions): SessionValue {
  const tip = typeof to === 'number' ? byIndex(value.tip, to) : byId(value.tip, to)
  const id = newId()
  const lane = laneOff(value.lineage.lane ?? rootLane, id)
  return { ...value, id, tip, lineage: lineage('rewind', [value.id], options, lane, sinceOf(value)) }
}

function byIndex(tip: Chunk | undefined, index: number): Chunk {
  const length = lengthOf(tip)
  const wanted = index < 0 ? index + length : index
  if (tip && Number.isInteger(wanted) && wanted >= 0 && wanted < length) return chunkAt(tip, wanted)
  throw new RathError(
    'unknown-chunk',
    `There is no chunk ${show(index)} to rewind to: this session has ${length}, numbered from 0.`,
  )
}

function byId(tip: Chunk | undefined, id: unknown): Chunk {
  if (typeof id !== 'string') {
    throw new RathError('invalid-argument', `rewind takes a chunk's id or index, not ${show(id)}.`)
  }
  // Asking for the newest id computes all of them, so that the walk back only compares.
  if (tip && knownId(tip) === undefined) void tip.id
  for (let here = tip; here; here = previousOf(here)) if (here.id === id || here.origin === id) return here
  throw new RathError(
    'unknown-chunk',
    `Chunk ${show(id)} is not in this session; take an id from session.chunks, or rewind the session it belongs to.`,
  )
}

function foreign(name: string): RathError {
  return new RathError(
    'foreign-chunk',
    `${name} already belongs to a session and its id covers that history. Use merge to join two sessions, or append its fields without the id as a new chunk.`,
  )
}
