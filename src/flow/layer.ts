import { RathError, show } from '../base/errors.ts'
import type { Session } from '../session/session.ts'
import type { Needs } from './needs.ts'
import { Workflow } from './workflow.ts'

/** What a container holds: a function from a session to a session, which every workflow is. */
export type Layer = (session: Session) => Session | Promise<Session>

/** A layer as a workflow: a function gets a name, a place in the tree and a run of its own. */
export function toWorkflow(layer: Layer, where: string): Workflow {
  if (layer instanceof Workflow) return layer
  if (typeof layer === 'function' && !isClass(layer)) return new Step(layer)
  throw new RathError(
    'invalid-argument',
    `${where} is ${isClass(layer) ? `the class ${(layer as { name: string }).name}` : show(layer)}; a layer is a workflow, or a function that returns a session.`,
  )
}

class Step extends Workflow {
  readonly #run: Layer

  constructor(run: Layer) {
    super()
    this.#run = run
  }

  override extraRepr(): string {
    return this.#run.name
  }

  override needs(): Needs {
    return { unknown: ['what the function does: it is code'] }
  }

  forward(session: Session): Session | Promise<Session> {
    return this.#run(session)
  }
}

/** `new Sequential(Writer)` instead of `new Sequential(new Writer())` is easily written. */
function isClass(value: unknown): boolean {
  return typeof value === 'function' && value.prototype instanceof Workflow
}
