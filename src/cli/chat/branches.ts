import { basename } from 'node:path'
import { sha256 } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { canonicalJson } from '../../base/json.ts'
import { isPlacedFolder, rootLane } from '../../session/lane.ts'
import type { Session } from '../../session/session.ts'
import type { Store } from '../../store/spec.ts'
import type { ChatPlace } from './place.ts'

export const mainBranch = 'main'

/** The branches of the conversation in a folder, kept as tags so that the next `rath chat` finds them. */
export class ChatBranches {
  readonly #sessions: Store['sessions']
  readonly #prefix: string
  readonly #folder: string
  readonly #place: ChatPlace

  constructor(sessions: Store['sessions'], folder: string, place: ChatPlace) {
    this.#sessions = sessions
    this.#folder = folder
    this.#place = place
    const name = basename(folder).replace(/[^\w.-]+/g, '-') || 'root'
    this.#prefix = `chat/${name}-${sha256(folder).slice(0, 6)}`
  }

  /** Only what works in this folder: a store that came with it may name another, where nobody wants anything changed. */
  async load(branch: string): Promise<Session | undefined> {
    try {
      const session = await this.#sessions.get(this.#tag(branch))
      const { backend = '', spec } = session.placement ?? {}
      const path = typeof spec === 'object' ? spec.path : spec
      if (!/^(local|isolated)$/.test(backend) || path !== this.#folder) return undefined
      return this.#moved(session, branch)
    } catch (error) {
      if (error instanceof RathError && error.code === 'unknown-session') return undefined
      throw error
    }
  }

  /** As the chat was started this time. A branch with files of its own stays where these are. */
  #moved(session: Session, branch: string): Session {
    const { backend, spec } = this.#place
    const { placement, lineage } = session
    if (canonicalJson([placement?.backend, placement?.spec]) === canonicalJson([backend, spec]))
      return session
    if (isPlacedFolder(lineage.lane ?? rootLane)) return session.to(backend, spec)
    const before = JSON.stringify(placement?.spec)
    throw new RathError(
      'placement-conflict',
      `The branch ${branch} was made where commands run ${placement?.backend} in ${before}, and its files are there. Start the chat as you did then, with rath chat --${placement?.backend}.`,
    )
  }

  /** The branch that was last worked on. */
  async current(): Promise<string> {
    const marked = await this.#sessions.row(`${this.#prefix}@`).catch(() => undefined)
    const own = marked?.tags.find(tag => tag.startsWith(`${this.#prefix}/`))
    return own?.slice(this.#prefix.length + 1) ?? mainBranch
  }

  async keep(branch: string, session: Session): Promise<void> {
    await this.#sessions.put(session)
    await this.#sessions.tag(session.id, this.#tag(branch))
    await this.#sessions.tag(session.id, `${this.#prefix}@`)
  }

  /** Names of the branches, the one worked on last first. */
  async names(): Promise<string[]> {
    const names: string[] = []
    let cursor: string | undefined
    do {
      const page = await this.#sessions.list({ tagged: true, limit: 1000, ...(cursor && { cursor }) })
      for (const { tags } of page.rows) {
        for (const tag of tags) {
          if (tag.startsWith(`${this.#prefix}/`)) names.push(tag.slice(this.#prefix.length + 1))
        }
      }
      cursor = page.cursor
    } while (cursor)
    return names
  }

  /** Forgets the names; the sessions stay. */
  async clear(): Promise<void> {
    for (const name of await this.names()) await this.#sessions.untag(this.#tag(name))
    await this.#sessions.untag(`${this.#prefix}@`).catch(() => {})
  }

  #tag(branch: string): string {
    return `${this.#prefix}/${branch}`
  }
}
