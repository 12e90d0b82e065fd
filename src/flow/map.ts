import { RathError, show } from '../base/errors.ts'
import { canonicalJson, isPlainObject } from '../base/json.ts'
import { call, type SessionInput } from '../run/call.ts'
import { type CallOptions, currentContext } from '../run/context.ts'
import type { PendingSession } from '../run/pending-session.ts'
import type { PartInput } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import { checkFanOut, type FanOutOptions, fanOut } from './fan-out.ts'
import { checkJoin, type JoinOptions, joinBranches } from './join.ts'
import { type Layer, toWorkflow } from './layer.ts'

export interface MapOptions<Item> extends FanOutOptions, JoinOptions, CallOptions {
  /** What an item is as a user message: a string as it is, anything else as JSON, by default. */
  readonly message?: (item: Item, index: number) => string | readonly PartInput[]
}

/**
 * One layer over many items: each gets a fork of the session with the item as a user message, and the forks are joined in the order of
 * the items. Without items the session comes back as it was.
 */
export function map<Item>(
  session: SessionInput,
  items: Iterable<Item>,
  layer: Layer,
  options: MapOptions<Item> = {},
): PendingSession {
  const { join = 'merge', onConflict, message = asMessage, limit, onFailure, ...callOptions } = options
  const fan = { ...(limit !== undefined && { limit }), ...(onFailure !== undefined && { onFailure }) }
  const joining = { join, ...(onConflict !== undefined && { onConflict }) }
  checkJoin(joining, 'map')
  checkFanOut(fan, 'map')
  const workflow = toWorkflow(layer, 'the layer of map')
  if (typeof items?.[Symbol.iterator] !== 'function') {
    throw new RathError(
      'invalid-argument',
      `map takes a list of items or another iterable, not ${show(items)}; collect an async one first: await Array.fromAsync(items).`,
    )
  }
  const all = [...items]
  const forward = async (given: Session): Promise<Session> => {
    if (all.length === 0) return given
    const forks = given.forks(all.length)
    const branches = all.map((item, i) => ({
      label: `${i}`,
      layer: workflow,
      input: (forks[i] as Session).user(message(item, i)),
    }))
    return joinBranches(given, await fanOut(branches, join === 'first' ? 'first' : 'all', fan), joining)
  }
  // The layer keeps the name under which the workflow around this call holds it.
  const around = currentContext()?.layer
  const callee = { name: 'map', operation: 'map', forward, ...(around && { layer: around }) }
  return call(callee, session, callOptions)
}

function asMessage(item: unknown, index: number): string {
  const text = typeof item === 'string' ? item : jsonOf(item)
  if (text) return text
  throw new RathError(
    'invalid-argument',
    `map: item ${index} is ${show(item)}, which says nothing as it is; say what its message is: map(…, { message: item => '…' }).`,
  )
}

/** Undefined where JSON has no form for it, or would leave out all there is, as with a Map. */
function jsonOf(item: unknown): string | undefined {
  try {
    const text = canonicalJson(item)
    return text === '{}' && !isPlainObject(item) ? undefined : text
  } catch {
    return undefined
  }
}
