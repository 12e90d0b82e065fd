import { closedError } from './commit.ts'
import type { Redactor } from './redact.ts'

/** The door of a store: it lets calls in until it closes, waits for those inside, and lets no secret out with an error. */
export class Gate {
  readonly #redactor: Redactor
  #open = true
  #inside = 0
  #emptied: (() => void) | undefined

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** The same object with its methods behind this door. Whatever is wrong with an async call, it rejects and never throws. */
  around<T extends object>(target: T): T {
    const methods = new Map<PropertyKey, unknown>()
    const guarded = (name: PropertyKey) => {
      const member = target[name as keyof T]
      if (typeof member !== 'function') return member
      if (name === 'subscribe') return (...args: unknown[]) => this.#enter(() => member.apply(target, args))
      if (name === 'write') return (...args: unknown[]) => this.#passAtOnce(() => member.apply(target, args))
      return (...args: unknown[]) => this.pass(() => member.apply(target, args))
    }
    return new Proxy(target, {
      get(_, name) {
        if (!methods.has(name)) methods.set(name, guarded(name))
        return methods.get(name)
      },
    })
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    this.#inside++
    try {
      return await this.#enter(work)
    } catch (error) {
      throw this.#redactor.error(error)
    } finally {
      if (--this.#inside === 0) this.#emptied?.()
    }
  }

  /** For what may be done when it returns: that throws what is wrong, and makes no promise. */
  #passAtOnce<T>(work: () => Promise<T> | undefined): Promise<T> | undefined {
    let running: Promise<T> | undefined
    try {
      running = this.#enter(work)
    } catch (error) {
      throw this.#redactor.error(error)
    }
    return running && this.pass(() => running)
  }

  async close(): Promise<void> {
    this.#open = false
    if (this.#inside === 0) return
    await new Promise<void>(resolve => {
      this.#emptied = resolve
    })
  }

  #enter<T>(work: () => T): T {
    if (!this.#open) throw closedError()
    return work()
  }
}
