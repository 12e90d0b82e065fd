import { FramePart } from '../frame.ts'

/** Waits in line: one at a time, in the order asked. */
class Line {
  #last: Promise<void> = Promise.resolve()

  async take(): Promise<() => void> {
    const before = this.#last
    let release!: () => void
    this.#last = new Promise(resolve => {
      release = resolve
    })
    await before
    return release
  }
}

/** Something that one call at a time may change. */
export class Hold {
  readonly line = new Line()
}

/** A call that may come to hold things; calls made inside it know it. */
export class HoldingCall {
  readonly #outer: HoldingCall | undefined
  readonly #held = new Map<Hold, { readonly inside: Line; release(): void }>()

  constructor(outer = holders.here) {
    this.#outer = outer
  }

  /** Runs work inside this call. */
  run<T>(work: () => T): T {
    return holders.run(this, work)
  }

  /**
   * Waits until this call may change it. A call inside one that holds it does not wait for that one, which waits for it: it takes turns
   * with the others inside.
   */
  async take(hold: Hold): Promise<void> {
    if (this.#held.has(hold)) return
    const line = this.#outer?.lineInside(hold) ?? hold.line
    this.#held.set(hold, { inside: new Line(), release: await line.take() })
  }

  release(): void {
    for (const { release } of this.#held.values()) release()
    this.#held.clear()
  }

  lineInside(hold: Hold): Line | undefined {
    return this.#held.get(hold)?.inside ?? this.#outer?.lineInside(hold)
  }
}

const holders = new FramePart<HoldingCall>()
