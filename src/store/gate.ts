import { closedError } from './commit.ts'
import type { Redactor } from './redact.ts'
import type { RunLog } from './spec.ts'

type Method = (...args: never[]) => unknown

/** Methods that return something else than a promise. */
const synchronous = new Set(['subscribe', 'begin', 'log'])

/** The door of a store: it lets calls in until it closes, waits for those inside, and lets no secret out with an error. */
export class Gate {
  readonly #redactor: Redactor
  #open = true
  #inside = 0
  #emptied: (() => void) | undefined

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** An object with the same methods, behind this door. Whatever is wrong with an async call, it rejects and never throws. */
  around<T extends object>(target: T): T {
    const door: Record<string, unknown> = {}
    for (const name of methodsOf(target)) {
      const method = target[name as keyof T] as Method
      if (synchronous.has(name))
        door[name] = (...args: never[]) => this.#enter(() => method.apply(target, args))
      else door[name] = (...args: never[]) => this.#call(target, method, args)
    }
    return door as T
  }

  /** The log of a run, behind this door. */
  aroundLog(log: RunLog): RunLog {
    const { run, fence } = log
    const append: RunLog['append'] = writes => this.#passAtOnce(() => log.append(writes))
    return {
      ...this.around({
        settled: () => log.settled(),
        renew: (ms: number) => log.renew(ms),
        release: () => log.release(),
      }),
      run,
      fence,
      append,
    }
  }

  pass<T>(work: () => Promise<T>): Promise<T> {
    return this.#call(undefined, work, []) as Promise<T>
  }

  // No async function: one more of those is felt by whoever appends again and again.
  #call(target: unknown, work: Method, args: readonly unknown[]): Promise<unknown> {
    if (!this.#open) return Promise.reject(closedError())
    this.#inside++
    let running: unknown
    try {
      running = Reflect.apply(work, target, args)
    } catch (error) {
      running = Promise.reject(error)
    }
    return Promise.resolve(running).then(this.#left, this.#failed)
  }

  readonly #left = <T>(value: T): T => {
    if (--this.#inside === 0) this.#emptied?.()
    return value
  }

  readonly #failed = (error: unknown): never => {
    this.#left(undefined)
    throw this.#redactor.error(error)
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

/** Of an instance of a class, or of a plain object; all that these have are methods. */
function methodsOf(target: object): string[] {
  const source = Object.getPrototypeOf(target) === Object.prototype ? target : Object.getPrototypeOf(target)
  return Object.getOwnPropertyNames(source).filter(name => name !== 'constructor')
}
