import { now } from '../base/clock.ts'
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
  /**
   * What else is known. The library writes `run` (the run whose call made it), `inside` (the `session` and `callId` of the tool that the call
   * was made in), `result` (the session that a call passed on) and `since` (the nearest session before its parents that may have been kept).
   */
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
  since?: string,
): Lineage {
  checkOptions(options, operation)
  const { by, label, at = now(), extras } = options
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
  const given = extras === undefined ? noExtras : (toJson(extras, `${operation}: extras`) as JsonObject)
  line.extras = since === undefined ? given : Object.freeze({ ...given, since })
  if (label !== undefined) line.label = label
  if (lane !== rootLane) line.lane = lane
  line.operation = operation
  line.parents = Object.freeze(parents)
  return Object.freeze(line)
}

/**
 * The lineage of a plain append. Most are never looked at, so this one is frozen when it is first shown and not when it is made.
 */
export function appendedTo(parent: string, lane: Lane | undefined, since: string | undefined): Lineage {
  const extras = since === undefined ? noExtras : Object.freeze({ since })
  return lane === undefined
    ? { at: now(), extras, operation: 'append', parents: [parent] }
    : { at: now(), extras, lane, operation: 'append', parents: [parent] }
}

/** The sessions that it came from: its parents, and where a step between was not kept, the nearest one before that may have been. */
export function namedBy({ parents, extras }: Lineage): readonly string[] {
  const { since } = extras
  return typeof since === 'string' ? [...parents, since] : parents
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
