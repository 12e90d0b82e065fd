import { isLost } from '../../../base/postgres/errors.ts'
import type { ListeningClient, Pool } from './pool.ts'

const channel = 'openrath_changed'
/** For the commit whose process died before it could tell anybody. */
const pollMs = 1000
const retryMs = 250
/** Many commits in so short a time are announced together. */
const announceMs = 20

/**
 * Wakes watchers when anything was committed. Has a connection of its own, only while somebody watches, and replaces it when it breaks.
 * Commits are announced outside their transactions: an announcement inside would make all commits of the server wait for each other.
 */
export class Watch {
  readonly #pool: Pool
  readonly #watchers = new Set<() => void>()
  #listening: Listening | undefined
  #announced: Promise<unknown> | undefined
  #due = false
  #pause: NodeJS.Timeout | undefined

  constructor(pool: Pool) {
    this.#pool = pool
  }

  add(wake: () => void): Disposable {
    const watcher = () => wake()
    this.#watchers.add(watcher)
    this.#listening ??= new Listening(this.#pool, this.#wakeAll)
    return {
      [Symbol.dispose]: () => {
        this.#watchers.delete(watcher)
        if (this.#watchers.size === 0) this.#stop()
      },
    }
  }

  /** Something was committed here. */
  announce(): void {
    this.#wakeAll()
    this.#due = true
    if (this.#pause === undefined) this.#notify()
  }

  async close(): Promise<void> {
    this.#watchers.clear()
    this.#stop()
    if (this.#due) this.#notify()
    clearTimeout(this.#pause)
    await this.#announced
  }

  readonly #wakeAll = () => {
    for (const wake of this.#watchers) wake()
  }

  #stop(): void {
    this.#listening?.end()
    this.#listening = undefined
  }

  #notify(): void {
    this.#due = false
    clearTimeout(this.#pause)
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      if (this.#due) this.#notify()
    }, announceMs)
    this.#pause.unref()
    // When it fails, followers find the change by looking, a little later.
    this.#announced = this.#pool.query(`NOTIFY ${channel}`).catch(() => {})
  }
}

class Listening {
  readonly #pool: Pool
  readonly #wake: () => void
  readonly #poll: NodeJS.Timeout
  #retry: NodeJS.Timeout | undefined
  #client: ListeningClient | undefined
  #ended = false

  constructor(pool: Pool, wake: () => void) {
    this.#pool = pool
    this.#wake = wake
    this.#poll = setInterval(() => this.#client && wake(), pollMs)
    this.#poll.unref()
    void this.#connect()
  }

  end(): void {
    this.#ended = true
    clearInterval(this.#poll)
    clearTimeout(this.#retry)
    this.#client?.end().catch(() => {})
    this.#client = undefined
  }

  async #connect(): Promise<void> {
    const client = this.#pool.client()
    const lost = () => this.#lost(client)
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', this.#wake)
    try {
      await client.connect()
      // A server that only reads cannot listen; then looking once a second has to do.
      await client
        .query(`LISTEN ${channel}`)
        .catch(error => (isLost(error) ? Promise.reject(error) : undefined))
    } catch {
      client.end().catch(() => {})
      return this.#lost(client)
    }
    if (this.#ended) return void client.end().catch(() => {})
    client.unref()
    this.#client = client
    // Whatever was committed while nobody listened.
    this.#wake()
  }

  /** A connection may report its end more than once. */
  #lost(client: ListeningClient): void {
    if (this.#ended || (this.#client !== undefined && this.#client !== client)) return
    this.#client = undefined
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#connect(), retryMs)
    this.#retry.unref()
  }
}
