import { cancelledError, onAbort } from '../base/abort.ts'
import { RathError } from '../base/errors.ts'
import { canonicalJson } from '../base/json.ts'
import { SandboxRegistry } from '../sandbox/registry.ts'
import type { Sandbox, SandboxBackend } from '../sandbox/spec.ts'
import { foldAt } from '../session/chain.ts'
import { identityOf } from '../session/identity.ts'
import { type Session, valueFrom } from '../session/session.ts'

/**
 * The sandboxes of a runtime. A place is opened when a tool first asks for it, once however many ask at the same time, and stays open for
 * every session placed there until the runtime closes.
 */
export class Places {
  readonly #backends: SandboxRegistry
  readonly #open = new Map<string, Promise<Sandbox>>()
  /** Places that stand for another one. */
  readonly #shared = new Map<string, string>()
  readonly #closing = new AbortController()

  constructor(backends: readonly SandboxBackend[] = []) {
    this.#backends = new SandboxRegistry(backends)
  }

  /** The sandbox of a session. An abort ends the wait, and not the opening, which others may be waiting for. */
  async open(session: Session, signal?: AbortSignal): Promise<Sandbox> {
    if (this.#closing.signal.aborted) {
      throw new RathError('sandbox-closed', 'The runtime is closed, and its sandboxes with it.')
    }
    if (signal?.aborted) throw cancelledError(signal)
    const key = this.#keyOf(session)
    let opening = this.#open.get(key)
    if (opening === undefined) {
      opening = this.#start(session)
      this.#open.set(key, opening)
      // What failed may work the next time.
      opening.catch(() => this.#open.delete(key))
    }
    return signal === undefined ? opening : orAborted(opening, signal)
  }

  /** Lets a session without a folder of its own work in that of another: a sub-agent in that of the agent which called it. */
  share(session: Session, other: Session): void {
    const [key, meant] = [keyOf(session), this.#keyOf(other)]
    if (key !== meant) this.#shared.set(key, meant)
  }

  /** Closes every sandbox, also one that is only being opened. Rejects with the first failure when all are done. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the runtime was closed'))
    const opened = await Promise.allSettled(this.#open.values())
    this.#open.clear()
    const closed = await Promise.allSettled(
      opened.map(place => (place.status === 'fulfilled' ? place.value.close() : undefined)),
    )
    for (const end of closed) if (end.status === 'rejected') throw end.reason
  }

  #keyOf(session: Session): string {
    const key = keyOf(session)
    return this.#shared.get(key) ?? key
  }

  async #start(session: Session): Promise<Sandbox> {
    const { backend, spec } = session.placement as NonNullable<Session['placement']>
    return this.#backends.get(backend).open(spec, { signal: this.#closing.signal })
  }
}

/**
 * Sessions whose placement says the same share a sandbox. One that names no folder gets one of its own, shared by what came from
 * the session that was placed: the chunk that placed it tells.
 */
function keyOf(session: Session): string {
  const placed = foldAt(valueFrom(session).tip).placement
  if (placed === undefined) {
    throw new RathError(
      'placement-missing',
      "This session has no place to work in, so there are no files and no commands. Whoever starts it gives it one with session.to('local', './').",
    )
  }
  const { backend, spec } = placed
  return canonicalJson(spec === undefined ? [backend, null, identityOf(placed)] : [backend, spec])
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const listening = onAbort(signal, () => reject(cancelledError(signal)))
    promise.then(resolve, reject).finally(() => listening[Symbol.dispose]())
  })
}
