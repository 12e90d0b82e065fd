import { RathError } from '../base/errors.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import type { SessionStore } from '../store/spec.ts'
import type { SessionInput } from './pending-session.ts'

/** Something that is called with a session, such as an agent. */
type Layer<Options> = (input: SessionInput, options?: Options) => Promise<Session>

/** Calls it in the runtime of the conversation. */
type Call = <Options>(
  layer: Layer<Options>,
  input: SessionInput,
  options: Options | undefined,
) => Promise<Session>

/**
 * One name for a conversation over many turns: every turn makes another session, and the name moves on to it, unless somebody else has moved it
 * meanwhile. Two answers to one question never overwrite each other.
 */
export class Conversation {
  readonly name: string
  readonly #sessions: SessionStore
  readonly #call: Call
  #opened: string | undefined

  constructor(name: string, sessions: SessionStore, call: Call) {
    this.name = name
    this.#sessions = sessions
    this.#call = call
  }

  /** What was said so far; an empty session at the beginning. `save` then expects that nobody else saves before it. */
  async open(): Promise<Session> {
    const session = (await this.#named()) ?? (await this.#begin())
    this.#opened = session.id
    return session
  }

  /** Keeps a session and moves the name to it. Refused with `session-conflict` when the name is no longer where `open` found it; the session is kept all the same. */
  async save(session: Session): Promise<Session> {
    const from = this.#opened ?? (await this.open()).id
    const kept = await this.#sessions.put(session)
    await this.#sessions.tag(kept.id, this.name, { from })
    this.#opened = kept.id
    return kept
  }

  /** One turn: opens the conversation, adds what a user says, calls an agent or another workflow with it, and saves what it made. */
  async send<Options>(
    layer: Layer<Options>,
    message: Parameters<Session['user']>[0],
    options?: Options,
  ): Promise<Session> {
    const session = await this.open()
    return this.save(await this.#call(layer, session.user(message), options))
  }

  async #named(): Promise<Session | undefined> {
    try {
      return await this.#sessions.get(this.name)
    } catch (error) {
      if (error instanceof RathError && error.code === 'unknown-session') return undefined
      throw error
    }
  }

  /** The same session from every process, so that only the first of them names it. */
  async #begin(): Promise<Session> {
    const empty = valueFrom(Session.create('empty'))
    const lineage = Object.freeze({ ...empty.lineage, parents: [], operation: 'create', at: 0 })
    const first = sessionOf({ ...empty, id: `conversation-${this.name}`, lineage })
    await this.#sessions.put(first, { tag: this.name, onlyNew: true })
    return this.#sessions.get(this.name)
  }
}
