import { RathError, show } from '../base/errors.ts'
import { type JsonObject, toJson } from '../base/json.ts'
import { type Lane, rootLane } from './lane.ts'

/** How a session came to be. Operations of the session layer are named here; layers above add their own names. */
export interface Lineage {
  readonly parents: readonly string[]
  readonly operation: Operation
  /** Who did it: a producer path such as `Review/writer`. */
  readonly by?: string
  readonly at: number
  readonly label?: string
  /** Which line of work it is on; absent at the root. */
  readonly lane?: Lane
  readonly extras: JsonObject
}

export type Operation =
  | 'create'
  | 'append'
  | 'to'
  | 'fork'
  | 'detach'
  | 'rewind'
  | 'merge'
  | 'import'
  | (string & {})

/** What any operation lets its caller put on the record. */
export interface OperationOptions {
  readonly by?: string
  readonly label?: string
  /** Milliseconds since the epoch; now by default. */
  readonly at?: number
  readonly extras?: JsonObject
}

const noExtras: JsonObject = Object.freeze({})

export function lineage(
  operation: Operation,
  parents: readonly string[],
  options: OperationOptions = {},
  lane: Lane = rootLane,
): Lineage {
  checkOptions(options, operation)
  const { by, label, at = Date.now(), extras } = options
  checkName(by, 'by', operation)
  checkName(label, 'label', operation)
  if (typeof at !== 'number' || !Number.isFinite(at)) {
    throw new RathError(
      'invalid-argument',
      `${operation}: at must be milliseconds since the epoch, not ${show(at)}.`,
    )
  }
  // Fields in canonical order, like those of chunks: read back from a file, a lineage is the same to the byte.
  const line = { at } as { -readonly [K in keyof Lineage]: Lineage[K] }
  if (by !== undefined) line.by = by
  line.extras = extras === undefined ? noExtras : (toJson(extras, `${operation}: extras`) as JsonObject)
  if (label !== undefined) line.label = label
  if (lane !== rootLane) line.lane = lane
  line.operation = operation
  line.parents = Object.freeze(parents)
  return Object.freeze(line)
}

/**
 * The lineage of a plain append. Most are never looked at, so this one is frozen when it is first shown and not when it is made.
 */
export function appendedTo(parent: string, lane: Lane | undefined): Lineage {
  return lane === undefined
    ? { at: Date.now(), extras: noExtras, operation: 'append', parents: [parent] }
    : { at: Date.now(), extras: noExtras, lane, operation: 'append', parents: [parent] }
}

/** The lineage of a call that was made before its input was there, on the lane of that input. */
export function onLane(line: Lineage, lane: Lane | undefined): Lineage {
  if (line.lane === lane) return line
  const { lane: _, ...rest } = line
  return lane === undefined ? rest : { ...rest, lane }
}

/** A lineage as anybody outside may have it. */
export function shown(lineage: Lineage): Lineage {
  Object.freeze(lineage.parents)
  return Object.freeze(lineage)
}

export function checkOptions(options: unknown, operation: Operation): void {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return
  throw new RathError(
    'invalid-argument',
    `${operation}: options must be an object such as { by: 'Review/writer' }, not ${show(options)}.`,
  )
}

function checkName(value: unknown, name: string, operation: Operation): void {
  if (value === undefined || (typeof value === 'string' && value !== '')) return
  throw new RathError(
    'invalid-argument',
    `${operation}: ${name} must be a non-empty string, not ${show(value)}.`,
  )
}
