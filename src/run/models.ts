import { RathError, show } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import { foundModel, type ModelLike, type ResolvedModel, resolveLater } from '../model/resolve.ts'

/** What names of models stand for in a runtime; they go before the environment and the config file. */
export class Models {
  readonly #byName: ReadonlyMap<string, ResolvedModel>

  constructor(given: Readonly<Record<string, ModelLike>> = {}) {
    if (!isPlainObject(given)) {
      throw new RathError('invalid-argument', `models is an object of models by name, not ${show(given)}.`)
    }
    this.#byName = new Map(Object.entries(given).map(([name, like]) => [name, resolveLater(like)]))
  }

  /** The model to ask where a part of a workflow has this one. Throws `unknown-model` where a name stands for nothing. */
  instead(model: ResolvedModel): ResolvedModel {
    return foundModel(this.#byName.get(model.named ?? '') ?? model)
  }
}
