import { type Event, type History, inOrderOfSteps, type Line } from '../../run/graph/history.ts'
import type { Material } from '../../run/graph/rows.ts'
import { previousOf } from '../../session/chain.ts'
import type { Session } from '../../session/session.ts'
import type { SessionNode } from './dossier.ts'

/** The sessions of the graph in the order of their steps, each with those it went on from. */
export function nodesOf(history: History, { sessions, final }: Material): SessionNode[] {
  const own = new Map<string, Event[]>()
  for (const event of history.events) {
    const known = own.get(event.session.id)
    if (known) known.push(event)
    else own.set(event.session.id, [event])
  }
  // The result may be the session of a call whose last steps are those of a call inside it.
  const result = own.has(final.id) ? final.id : (tipOf(final, history)?.session.id ?? final.id)
  const nodes = sessions.map(session => {
    const { parents, operation, at, by, label } = session.lineage
    const events = own.get(session.id) ?? []
    return {
      id: session.id,
      parents,
      operation,
      at,
      ...(by !== undefined && { by }),
      ...(label !== undefined && { label }),
      branch: (history.lineOf.get(session.id) as Line).index,
      head: session.head ?? null,
      length: session.length,
      after: [...new Set(beforeIt(session, events, history))],
      steps: events.length,
      ...(events[0] && { firstStep: events[0].n }),
      ...(session.id === result && { isFinal: true as const }),
    }
  })
  return inOrderOfSteps(nodes, history, sessions)
}

function beforeIt(session: Session, events: readonly Event[], history: History): string[] {
  const [first] = events
  if (first === undefined) {
    const tip = tipOf(session, history)
    return tip ? [tip.session.id] : []
  }
  const before = previousOf(first.chunk)
  const from = before && history.byChunk.get(before.id)?.session.id
  const merged = events.flatMap(({ chunk }) =>
    chunk.kind === 'merge'
      ? chunk.branches.flatMap(({ head }) => {
          const tip = head === null ? undefined : history.byChunk.get(head)
          return tip && tip.session.id !== session.id ? [tip.session.id] : []
        })
      : [],
  )
  return [...(from === undefined ? [] : [from]), ...merged]
}

function tipOf({ head }: Session, { byChunk }: History): Event | undefined {
  return head === undefined ? undefined : byChunk.get(head)
}
