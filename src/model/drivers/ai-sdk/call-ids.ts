import { sha256 } from '../../../base/digest.ts'

/**
 * Ids of calls as one provider takes them. A session may hold ids that another provider made, or that a merge made unique, in
 * letters or a length that this one refuses.
 */
export class CallIds {
  readonly #allowed: RegExp | undefined

  constructor(allowed: RegExp | undefined) {
    this.#allowed = allowed
  }

  /** The same for the same id every time, so that a call and its result meet and the prefix cache holds. */
  of(id: string): string {
    return this.#allowed === undefined || this.#allowed.test(id) ? id : `call_${sha256(id).slice(0, 24)}`
  }
}
