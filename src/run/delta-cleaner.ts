import type { ModelDelta } from '../model/spec.ts'
import type { Store } from '../store/spec.ts'

/**
 * Takes secrets out of an answer while it comes. A secret may come in pieces, so the end of what has come is held back for as long as it may
 * be the beginning of one; `end` gives what is left.
 */
export class DeltaCleaner {
  readonly #store: Store
  readonly #emit: (delta: ModelDelta) => void
  /** A delta whose text may go on in the next one. */
  #held: ModelDelta | undefined

  constructor(store: Store, emit: (delta: ModelDelta) => void) {
    this.#store = store
    this.#emit = emit
  }

  add(delta: ModelDelta): void {
    if (this.#held && !isContinued(this.#held, delta)) this.end()
    const text = (this.#held?.text ?? '') + delta.text
    this.#held = undefined
    const back = this.#store.unfinished?.(text) ?? 0
    if (back > 0) this.#held = { ...delta, text: text.slice(text.length - back) }
    const clean = this.#store.clean(back > 0 ? text.slice(0, text.length - back) : text)
    if (clean !== '') this.#emit(clean === delta.text ? delta : { ...delta, text: clean })
  }

  end(): void {
    const held = this.#held
    this.#held = undefined
    if (held) this.#emit({ ...held, text: this.#store.clean(held.text) })
  }
}

function isContinued(held: ModelDelta, next: ModelDelta): boolean {
  return (
    held.type === next.type &&
    (held.type !== 'tool-input-delta' || held.callId === (next as typeof held).callId)
  )
}
