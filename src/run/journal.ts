import { hostname } from 'node:os'
import { RathError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { stateOf, thisMark } from '../base/process.ts'
import type { Session } from '../session/session.ts'
import type { CancelRequest, NewEntry, RunChange, RunLog, RunWrite, Store } from '../store/spec.ts'
import { definition, sessionKey } from './entry.ts'

/** How long a run counts as driven after its process was last heard of. */
export const usualLease = 15_000

export interface NewJournal {
  readonly id: string
  readonly input: string
  readonly data: JsonObject
  /** The id was made for this run, so nobody else can have it. */
  readonly isFresh: boolean
  readonly lease: number
}

const later = setImmediate

/** A timer holds no more than some weeks. */
const longestRenewal = 3_600_000

/**
 * The writing side of a run: its row, its lease and its entries. Writes that nobody waits for are held until the next one that somebody
 * does, so that an effect costs one commit; the store keeps their order. What returns nothing instead of a promise is done: on a store that
 * never waits, nobody does.
 */
export class Journal {
  readonly store: Store
  readonly run: string
  readonly #log: RunLog
  #held: RunWrite[] = []
  readonly #made = new Set<string>()
  #writing: Set<Promise<void>> | undefined
  #isScheduled = false
  #renewal: NodeJS.Timeout | undefined
  #failure: { readonly error: unknown } | undefined
  /** Called once when this journal can write no more. */
  onLost: ((error: RathError) => void) | undefined
  /** Called when somebody has asked for the end of the run, from any process. */
  onCancel: ((request: CancelRequest) => void) | undefined

  private constructor(store: Store, log: RunLog, lease: number) {
    this.store = store
    this.run = log.run
    this.#log = log
    this.#renewal = setInterval(
      () => this.#renew(lease),
      Math.min(longestRenewal, Math.max(1, Math.floor(lease / 3))),
    )
    this.#renewal.unref()
  }

  static async create({ id, input, data, isFresh, lease }: NewJournal, store: Store): Promise<Journal> {
    const owner = newOwner()
    // Nothing has to be waited for: the run is created with its first intent.
    if (isFresh) return new Journal(store, store.runs.begin({ id, input, data }, owner, lease), lease)
    await store.runs.create({ id, input, data })
    return new Journal(store, await store.runs.claim(id, owner, lease), lease)
  }

  /** Becomes the one who drives a run, in place of nobody or of a process that is gone. */
  static async claim(id: string, store: Store, lease: number): Promise<Journal> {
    const { owner } = await store.runs.get(id)
    const instead = owner !== null && isGone(owner) ? { instead: owner } : {}
    return new Journal(store, await store.runs.claim(id, newOwner(), lease, instead), lease)
  }

  /** Whether a run writes to it, and ends it. */
  get isDriven(): boolean {
    return this.onLost !== undefined
  }

  /** Resolves when it is durable, and with it everything held. */
  intend(entry: NewEntry): Promise<void> | undefined {
    this.check()
    this.#held.push({ kind: 'intend', entry })
    const writing = this.flush()
    if (writing) return writing.then(() => this.check())
    this.check()
    return undefined
  }

  /** Writes an outcome behind what was written before; `settled` waits for it. */
  conclude({ key, occurrence }: Pick<NewEntry, 'key' | 'occurrence'>, outcome: Json): void {
    this.#hold({ kind: 'conclude', key, occurrence, outcome })
  }

  /** Writes an outcome that somebody else may have given meanwhile. Resolves with the one that stands: the first. */
  async settle({ key, occurrence }: Pick<NewEntry, 'key' | 'occurrence'>, outcome: Json): Promise<Json> {
    await this.settled()
    try {
      await this.#log.append([{ kind: 'conclude', key, occurrence, outcome }])
      return outcome
    } catch (error) {
      const given = isConflict(error) && (await this.store.runs.entry(this.run, key, occurrence))?.outcome
      if (given) return given
      this.#fail(error)
      this.check()
      throw error
    }
  }

  /** An intent that nobody has to wait for. */
  note(entry: NewEntry): void {
    this.#hold({ kind: 'intend', entry })
  }

  update(change: RunChange): void {
    // A lease that was given back cannot be renewed, and that is no failure.
    if (change.release) clearInterval(this.#renewal)
    this.#hold({ kind: 'update', change })
  }

  keep(session: Session): void {
    this.#hold({ kind: 'put', session })
    this.made(session.id)
  }

  /** Writes down that a session is of this run, and which of its drives kept it: a resumed run makes its sessions again. */
  made(session: string): void {
    if (this.#made.has(session)) return
    this.#made.add(session)
    const occurrence = this.#log.fence
    this.#hold({
      kind: 'intend',
      entry: { key: sessionKey(session), occurrence, kind: definition, request: { session } },
    })
  }

  #hold(write: RunWrite): void {
    this.#held.push(write)
    if (this.#isScheduled) return
    this.#isScheduled = true
    later(() => {
      this.#isScheduled = false
      this.flush()
    })
  }

  /** Writes what is held. Ends well in any case: `check` throws what was refused. */
  flush(): Promise<void> | undefined {
    if (this.#held.length === 0) return undefined
    const writes = this.#held
    this.#held = []
    try {
      const writing = this.#log.append(writes)
      return writing && this.#track(writing)
    } catch (error) {
      this.#fail(error)
      return undefined
    }
  }

  /** Resolves when everything written so far is durable; rejects when any of it was refused. */
  async settled(): Promise<void> {
    this.flush()
    if (this.#writing?.size) await Promise.all(this.#writing)
    this.check()
  }

  /** Throws when something could not be written: nothing may follow from it. */
  check(): void {
    if (this.#failure) throw this.#failure.error
  }

  /** Gives the run back, for others to drive. */
  async release(): Promise<void> {
    this.update({ release: true })
    await this.settled().finally(() => this.stop())
  }

  /** Ends the lease's renewal; nothing is written afterwards. */
  stop(): void {
    clearInterval(this.#renewal)
    this.#renewal = undefined
  }

  #renew(lease: number): void {
    this.#log.renew(lease).then(
      ({ cancel }) => {
        if (cancel) this.onCancel?.(cancel)
      },
      error => {
        // A store that is busy now may answer the next time; a fence that was raised stays raised.
        if (error instanceof RathError && error.code === 'run-fenced') this.#fail(error)
      },
    )
  }

  #track(write: Promise<void>): Promise<void> {
    this.#writing ??= new Set()
    const writing = this.#writing
    const tracked: Promise<void> = write.then(
      () => void writing.delete(tracked),
      error => {
        writing.delete(tracked)
        this.#fail(error)
      },
    )
    writing.add(tracked)
    return tracked
  }

  #fail(error: unknown): void {
    if (this.#failure || this.#renewal === undefined) return
    const lost = error instanceof RathError && error.code === 'run-fenced' ? ownedError(error) : undefined
    this.#failure = { error: lost ?? error }
    this.stop()
    this.onLost?.(
      lost ??
        (error instanceof RathError ? error : new RathError('store-failed', String(error), { cause: error })),
    )
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof RathError && error.code === 'journal-conflict'
}

function ownedError(cause: RathError): RathError {
  return new RathError(
    'run-owned',
    `Somebody else drives this run now, and this process has stopped: ${cause.message} Follow the run there, or resume it when that one has ended.`,
    { cause, data: cause.data },
  )
}

let made = 0

/** A name for one who drives a run: the machine, the process, and which of its drivers. No two are the same. */
export function newOwner(): string {
  made++
  return `${hostname().replaceAll('/', '-')}/${thisMark()}/${newId().slice(-8)}.${made}`
}

/** Whether an owner is certainly gone. One that cannot be seen from here has to be waited for, until the lease ends. */
export function isGone(owner: string): boolean {
  return stateOf(processOf(owner)) === 'gone'
}

/** The mark of an owner's process. */
export function processOf(owner: string): string {
  return owner.split('/')[1] ?? ''
}
