import { RathError, show } from '../base/errors.ts'
import type { StoreDriver } from './driver.ts'
import type { SessionChange, SubscribeOptions } from './spec.ts'

/** Tells listeners about changed sessions. All of them share one watch of the driver, which lasts while there are any. */
export class Follower {
  readonly #driver: StoreDriver
  readonly #subscriptions = new Set<Subscription>()
  #watch: Disposable | undefined

  constructor(driver: StoreDriver) {
    this.#driver = driver
  }

  subscribe(listener: (change: SessionChange) => void, options: SubscribeOptions = {}): Disposable {
    checkCursor(this.#driver, options.cursor)
    const subscription = new Subscription(this.#driver, listener, options)
    this.#subscriptions.add(subscription)
    this.#watch ??= this.#driver.watch(() => {
      for (const each of this.#subscriptions) each.wake()
    })
    return {
      [Symbol.dispose]: () => {
        subscription.end()
        this.#subscriptions.delete(subscription)
        if (this.#subscriptions.size === 0) this.#stop()
      },
    }
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.end()
    this.#subscriptions.clear()
    this.#stop()
  }

  #stop(): void {
    this.#watch?.[Symbol.dispose]()
    this.#watch = undefined
  }
}

function checkCursor(driver: StoreDriver, cursor: unknown): void {
  if (cursor === undefined || (typeof cursor === 'string' && driver.isCursor(cursor))) return
  throw new RathError(
    'invalid-argument',
    `${show(cursor)} is not a cursor of this store's changes: give the cursor of a change that it told, or none to begin with the next.`,
  )
}

class Subscription {
  readonly #driver: StoreDriver
  readonly #listener: (change: SessionChange) => void
  readonly #session: string | undefined
  #cursor: string | undefined
  #ended = false
  #awake = false
  #again = false

  constructor(driver: StoreDriver, listener: (change: SessionChange) => void, options: SubscribeOptions) {
    this.#driver = driver
    this.#listener = listener
    this.#session = options.session
    this.#cursor = options.cursor
    this.wake()
  }

  wake(): void {
    this.#again = true
    if (!this.#awake) void this.#run()
  }

  end(): void {
    this.#ended = true
  }

  /** Reads changes until there are none; a wake-up meanwhile makes it look once more. */
  async #run(): Promise<void> {
    this.#awake = true
    while (this.#again && !this.#ended) {
      this.#again = false
      try {
        const before = this.#cursor
        const { rows, cursor } = await this.#driver.changes(before)
        this.#cursor = cursor
        // Whoever stops in the middle of these and resumes is told the first of them again rather than left without the rest.
        for (const [i, session] of rows.entries())
          this.#tell({ session, cursor: i === rows.length - 1 ? cursor : (before ?? cursor) })
        if (rows.length > 0) this.#again = true
      } catch (error) {
        if (!this.#ended) report('following the store failed and is tried again at the next change', error)
      }
    }
    this.#awake = false
  }

  #tell(change: SessionChange): void {
    if (this.#ended || (this.#session !== undefined && change.session.id !== this.#session)) return
    try {
      this.#listener(change)
    } catch (error) {
      report('a subscribed listener threw', error)
    }
  }
}

function report(what: string, error: unknown): void {
  process.emitWarning(
    `openrath: ${what}: ${error instanceof Error ? error.message : String(error)}`,
    'OpenRathWarning',
  )
}
