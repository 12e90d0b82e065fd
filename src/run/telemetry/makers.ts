import type { Chunk } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import type { OtelLink, OtelSpanContext } from './otel.ts'

/** Sessions whose makers are remembered by id; the oldest are forgotten first. */
const most = 10_000
/** So many chunks are looked at behind the last one: what is added to a session between two calls is short. */
const farthest = 256

/** Which span made which session, as far as this process knows. */
export class Makers {
  readonly #byId = new Map<string, OtelSpanContext>()
  /** By the last chunk: forks and appends of a session have ids of their own, and the same chunks. */
  readonly #byChunk = new WeakMap<Chunk, { readonly maker: OtelSpanContext; readonly session: string }>()

  add(session: Session, maker: OtelSpanContext): void {
    const { id } = session
    this.#byId.delete(id)
    this.#byId.set(id, maker)
    if (this.#byId.size > most) this.#byId.delete(this.#byId.keys().next().value as string)
    const last = session.chunks.at(-1)
    if (last) this.#byChunk.set(last, { maker, session: id })
  }

  /** Links to what made a session: the call it comes from, or the parents of the fork or merge that it is. */
  linksOf(session: Session): OtelLink[] {
    const { id, lineage } = session
    const own = this.#links([id], 'call')
    if (own.length > 0) return own
    const parents = this.#links(lineage.parents, lineage.operation)
    return parents.length > 0 ? parents : this.#behind(session)
  }

  /** The same for what a call returns, when it is a merge of what others made. */
  linksOfMerge({ lineage }: Session): OtelLink[] {
    return lineage.operation === 'merge' ? this.#links(lineage.parents, 'merge') : []
  }

  #behind({ chunks, lineage }: Session): OtelLink[] {
    const last = chunks.length - 1
    for (let index = last; index >= 0 && index > last - farthest; index--) {
      const chunk = chunks.at(index) as Chunk
      const known = this.#byChunk.get(chunk)
      if (known) return [linkTo(known.maker, known.session, lineage.operation)]
      if (chunk.kind !== 'merge') continue
      const merged = this.#links(
        chunk.branches.map(branch => branch.session),
        'merge',
      )
      if (merged.length > 0) return merged
    }
    return []
  }

  #links(ids: readonly string[], operation: string): OtelLink[] {
    return ids.flatMap(id => {
      const maker = this.#byId.get(id)
      return maker ? [linkTo(maker, id, operation)] : []
    })
  }
}

/** `operation` is how the session that is worked on came from the one that was made. */
function linkTo(context: OtelSpanContext, session: string, operation: string): OtelLink {
  return { context, attributes: { 'openrath.session.id': session, 'openrath.operation': operation } }
}
