import { type ModelLike, type ResolvedModel, resolveLater } from '../model/resolve.ts'
import { classNameOf } from './tree.ts'

/**
 * What a workflow holds that asks a model and is called otherwise than a workflow. It belongs in the tree of the workflow that holds
 * it: `instanceof ModelPart` finds it, `model` says whom it asks and `to` changes that. Instances are functions, like workflows.
 */
export abstract class ModelPart {
  declare readonly name: string
  declare model: ResolvedModel

  constructor() {
    // See Workflow: a function with this class's prototype, so that fields of subclasses land on it.
    const instance = ((...given: unknown[]) => instance.called(...given)) as unknown as ModelPart
    Object.setPrototypeOf(instance, new.target.prototype)
    Reflect.deleteProperty(instance, 'length')
    Object.defineProperty(instance, 'name', { value: new.target.name, configurable: true, writable: true })
    return instance
  }

  /** What calling the instance does. */
  protected abstract called(...given: unknown[]): unknown

  to(model: ModelLike): this {
    this.model = resolveLater(model)
    return this
  }

  /** Its part of the producer path inside a workflow: what that one holds it as. */
  nameIn(holder: object): string {
    return Object.entries(holder).find(([, value]) => value === this)?.[0] ?? this.name
  }

  /** What the print of a tree says about it. */
  extraRepr(): string {
    return this.model.id
  }

  toString(): string {
    return `${classNameOf(this)}(${this.extraRepr()})`
  }

  get [Symbol.toStringTag](): string {
    return classNameOf(this)
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }
}
