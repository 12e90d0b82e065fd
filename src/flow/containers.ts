import { RathError, show } from '../base/errors.ts'
import { canonicalJson, isPlainObject } from '../base/json.ts'
import { call } from '../run/call.ts'
import { type CallOptions, currentContext } from '../run/context.ts'
import type { PendingSession, SessionInput } from '../run/pending-session.ts'
import type { PartInput } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import { checkFanOut, type FanOutOptions, fanOut } from './fan-out.ts'
import { checkJoin, type Join, type JoinOptions, joinBranches } from './join.ts'
import { type Layer, toWorkflow } from './layer.ts'
import type { Needs } from './needs.ts'
import { type Module, Workflow } from './workflow.ts'

/** Layers one after the other: each gets what the one before it made. */
export class Sequential extends Workflow {
  readonly layers: readonly Workflow[]

  constructor(...layers: readonly Layer[]) {
    super()
    if (layers.length === 0) {
      throw new RathError('invalid-argument', 'new Sequential(…) needs at least one layer.')
    }
    this.layers = Object.freeze(layers.map((layer, i) => toWorkflow(layer, `layer ${i} of Sequential`)))
  }

  /** By number, as in torch. */
  override namedChildren(): ReadonlyMap<string, Module> {
    return new Map(this.layers.map((layer, i) => [`${i}`, layer]))
  }

  override needs(): Needs {
    return { ...super.needs(), unknown: [] }
  }

  async forward(session: Session): Promise<Session> {
    let last = session
    for (const layer of this.layers) last = await layer(last)
    return last
  }
}

export interface ParallelOptions extends FanOutOptions, JoinOptions {}

/**
 * Layers side by side, each on a fork of the session, joined into one session again. In a record the forks are labelled by its keys, in
 * a list they are numbered. Results keep the order of the branches whatever finishes first.
 */
export class Parallel extends Workflow {
  readonly branches: ReadonlyMap<string, Workflow>
  readonly join: Join
  readonly #options: ParallelOptions
  readonly #isLabelled: boolean

  constructor(branches: readonly Layer[] | Readonly<Record<string, Layer>>, options: ParallelOptions = {}) {
    super()
    if (!Array.isArray(branches) && !isPlainObject(branches)) {
      throw new RathError(
        'invalid-argument',
        `new Parallel(…) takes a list or a record of layers, not ${show(branches)}.`,
      )
    }
    const entries: [string, Layer][] = Object.entries(branches)
    if (entries.length === 0) {
      throw new RathError('invalid-argument', 'new Parallel(…) needs at least one branch.')
    }
    checkJoin(options, 'Parallel')
    checkFanOut(options, 'Parallel')
    this.branches = new Map(
      entries.map(([key, layer]) => [key, toWorkflow(layer, `branch ${key} of Parallel`)]),
    )
    this.join = options.join ?? 'merge'
    this.#options = options
    this.#isLabelled = !Array.isArray(branches)
  }

  /** The branches by label or number, and the judge as `join`. */
  override namedChildren(): ReadonlyMap<string, Module> {
    const children = new Map<string, Module>(this.branches)
    if (this.join instanceof Workflow) children.set(children.has('join') ? '(join)' : 'join', this.join)
    return children
  }

  override extraRepr(): string {
    const { join } = this
    const how =
      join instanceof Workflow ? 'a judge' : typeof join === 'function' ? join.name || 'a function' : join
    const { limit } = this.#options
    return `join: ${how}${limit === undefined ? '' : `, limit: ${limit}`}`
  }

  override needs(): Needs {
    const unknown = []
    if (this.join === 'first') unknown.push('which branch is first')
    if (typeof this.join === 'function' && !(this.join instanceof Workflow))
      unknown.push('what the join does: it is code')
    return { ...super.needs(), unknown }
  }

  async forward(session: Session): Promise<Session> {
    const layers = [...this.branches]
    const forks = session.forks(this.#isLabelled ? layers.map(([label]) => label) : layers.length)
    const branches = layers.map(([label, layer], i) => ({ label, layer, input: forks[i] as Session }))
    const until = this.join === 'first' ? 'first' : 'all'
    return joinBranches(session, await fanOut(branches, until, this.#options), this.#options)
  }
}

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
