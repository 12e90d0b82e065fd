import { RathError } from '../base/errors.ts'
import type { Session } from '../session/session.ts'
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
