import { RathError, show } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import type { Session } from '../session/session.ts'
import { checkFanOut, type FanOutOptions, fanOut } from './fan-out.ts'
import { checkJoin, type Join, type JoinOptions, joinBranches } from './join.ts'
import { type Layer, toWorkflow } from './layer.ts'
import type { Needs } from './needs.ts'
import { type Module, Workflow } from './workflow.ts'

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
