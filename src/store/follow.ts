import { RathError, show } from '../base/errors.ts'
import type { ChangeLog, StoreDriver } from './driver.ts'

/** A row that has changed, and where to go on behind it. */
interface Change<Row> {
  readonly row: Row
  readonly cursor: string
}

interface FollowOptions {
  /** Only the row with this id. */
  readonly id?: string | undefined
  readonly cursor?: string | undefined
}

/** Tells listeners about changed sessions, or runs. All of them share one watch of the driver, which lasts while there are any. */
export class Follower<Row extends { readonly id: string }> {
  readonly #watchDriver: StoreDriver['watch']
  readonly #log: ChangeLog<Row>
  readonly #subscriptions = new Set<Subscription<Row>>()
  #watch: Disposable | undefined

  constructor(watch: StoreDriver['watch'], log: ChangeLog<Row>) {
    this.#watchDriver = watch
    this.#log = log
  }

  subscribe(listener: (change: Change<Row>) => void, options: FollowOptions): Disposable {
    checkCursor(this.#log, options.cursor)
    const subscription = new Subscription(this.#log, listener, options)
    this.#subscriptions.add(subscription)
    this.#watch ??= this.#watchDriver(() => {
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

function checkCursor(log: ChangeLog<unknown>, cursor: unknown): void {
  if (cursor === undefined || (typeof cursor === 'string' && log.isCursor(cursor))) return
  throw new RathError(
    'invalid-argument',
    `${show(cursor)} is not a cursor of this store's changes: give the cursor of a change that it told, or none to begin with the next.`,
  )
}

class Subscription<Row extends { readonly id: string }> {
  readonly #log: ChangeLog<Row>
  readonly #listener: (change: Change<Row>) => void
  readonly #id: string | undefined
  #cursor: string | undefined
  #ended = false
  #awake = false
  #again = false

  constructor(log: ChangeLog<Row>, listener: (change: Change<Row>) => void, { id, cursor }: FollowOptions) {
    this.#log = log
    this.#listener = listener
    this.#id = id
    this.#cursor = cursor
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
        const { rows, cursor } = await this.#log.behind(before)
        this.#cursor = cursor
        // Whoever stops in the middle of these and resumes is told the first of them again rather than left without the rest.
        for (const [i, row] of rows.entries())
          this.#tell({ row, cursor: i === rows.length - 1 ? cursor : (before ?? cursor) })
        if (rows.length > 0) this.#again = true
      } catch (error) {
        if (!this.#ended) report('following the store failed and is tried again at the next change', error)
      }
    }
    this.#awake = false
  }

  #tell(change: Change<Row>): void {
    if (this.#ended || (this.#id !== undefined && change.row.id !== this.#id)) return
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
