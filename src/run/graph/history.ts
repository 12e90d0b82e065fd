import type { Digest } from '../../base/digest.ts'
import { isPlainObject } from '../../base/json.ts'
import { backwards, previousOf } from '../../session/chain.ts'
import type { Chunk, ChunkBody, FileChange } from '../../session/chunk.ts'
import { identify, identityOf } from '../../session/identity.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { type Material, sessionsInside } from './rows.ts'

/** Something that happened: a chunk, in the session that it was made for. */
export interface Event {
  /** Its number, from 1. */
  readonly n: number
  readonly chunk: Chunk
  readonly session: Session
  readonly line: Line
  readonly inFinal: boolean
}

/** A line of work, with what was done on it. */
export interface Line {
  readonly index: number
  readonly name: string
  /** The chunk that it was worked inside of: a tool result or an effect. */
  inside?: Event
  readonly began: Session
  readonly sessions: Session[]
  readonly events: Event[]
}

/** A chunk that is not what was recorded. */
export interface Damage {
  readonly session: string
  readonly index: number
  readonly reason: string
}

export interface History {
  readonly events: readonly Event[]
  readonly lines: readonly Line[]
  readonly lineOf: ReadonlyMap<string, Line>
  /** Events by chunk id and by what stays the same however often a chunk is merged. */
  readonly byChunk: ReadonlyMap<Digest, Event>
  /** Chunks whose digest was computed anew. */
  readonly checked: number
  readonly problem?: Damage
}

/**
 * Every chunk of the sessions once. The session of a call has all that the calls inside it did, so a chunk belongs to the shortest history
 * that holds it; one that was merged in behind others is the one it was on its branch. Linear in chunks: what sessions share is walked once.
 */
export function historyOf({ final, sessions }: Material): History {
  const lineOf = linesOf(sessions)
  const inFinal = reachedFrom(final, sessions)
  const groups = groupsOf(sessions)
  const known = new Set<Digest>()
  for (const { chunks } of groups)
    for (const { origin, id } of chunks) if (origin === undefined) known.add(id)
  const events: Event[] = []
  const byChunk = new Map<Digest, Event>()
  const merged: Chunk[] = []
  for (const { session, chunks } of groups) {
    const line = lineOf.get(session.id) as Line
    for (const chunk of chunks) {
      const identity = identityOf(chunk)
      if (chunk.origin !== undefined) {
        merged.push(chunk)
        if (known.has(identity)) continue
        known.add(identity)
      }
      const event = { n: events.length + 1, chunk, session, line, inFinal: inFinal.has(identity) }
      events.push(event)
      line.events.push(event)
      byChunk.set(identity, event)
    }
  }
  for (const chunk of merged) byChunk.set(chunk.id, byChunk.get(identityOf(chunk)) as Event)
  for (const event of events)
    for (const id of sessionsInside(event.chunk)) {
      const line = lineOf.get(id)
      if (line && line !== event.line) line.inside ??= event
    }
  return { events, lines: [...new Set(lineOf.values())], lineOf, byChunk, ...verified(groups) }
}

/**
 * What calls changed in files, each change once: a call that others were made inside of found their changes too, and has only those that none of
 * them recorded.
 */
export function changesOf(events: readonly Event[]): { readonly event: Event; readonly file: FileChange }[] {
  const inside = new Map<Event, Set<string>>()
  for (const event of events)
    for (const { path } of filesIn(event))
      for (let outer = event.line.inside; outer; outer = outer.line.inside) {
        const paths = inside.get(outer)
        if (paths) paths.add(path)
        else inside.set(outer, new Set([path]))
      }
  return events.flatMap(event =>
    filesIn(event)
      .filter(({ path }) => !inside.get(event)?.has(path))
      .map(file => ({ event, file })),
  )
}

function filesIn({ chunk }: Event): readonly FileChange[] {
  return chunk.kind === 'tool-result' ? (chunk.files ?? []) : []
}

/** The chunks of a session's history, and of the sessions that were made inside them. */
function reachedFrom(final: Session, sessions: readonly Session[]): Set<Digest> {
  const byId = new Map(sessions.map(session => [session.id, session]))
  const reached = new Set<Digest>()
  const queue = new Set([final])
  for (const session of queue)
    for (const chunk of backwards(valueFrom(session).tip)) {
      if (reached.has(identityOf(chunk))) break
      reached.add(identityOf(chunk))
      for (const id of sessionsInside(chunk)) {
        const inside = byId.get(id)
        if (inside) queue.add(inside)
      }
    }
  return reached
}

/** Sessions in the order of their steps; one that only called others is behind the last step it took over. */
export function inOrderOfSteps<T extends { readonly id: string }>(
  items: readonly T[],
  history: History,
  sessions: readonly Session[],
): T[] {
  const place = new Map(
    sessions.map(({ id, head }) => [id, ((head && history.byChunk.get(head)?.n) || 0) + 0.5]),
  )
  for (const { n, session } of history.events.toReversed()) place.set(session.id, n)
  return items.toSorted((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0))
}

interface Group {
  readonly session: Session
  /** What it has of its own, oldest first. */
  readonly chunks: readonly Chunk[]
}

/** Sessions with what they have of their own, in the order of time; never before what they went on from. */
function groupsOf(sessions: readonly Session[]): Group[] {
  const ordered = sessions
    .map((session, rank) => ({ session, rank, own: isByItself(session) ? 0 : 1 }))
    .sort((a, b) => a.session.length - b.session.length || a.own - b.own || a.rank - b.rank)
    .map(({ session }) => session)
  const owners = ownersOf(ordered)
  const chunks = new Map<Session, Chunk[]>(ordered.map(session => [session, []]))
  for (const { chunk, session } of owners.values()) chunks.get(session)?.push(chunk)
  const groups = ordered.map(session => {
    const own = (chunks.get(session) as Chunk[]).sort((a, b) => a.index - b.index)
    return { session, chunks: own, start: own[0]?.index ?? session.length, merges: own.some(isMerge) ? 1 : 0 }
  })
  // What a session went on from begins further back in the same history, so its place in time is known first.
  const places = new Map<Session, { at: number; rank: number }>()
  for (const { session, chunks: own } of groups.toSorted(
    (a, b) => a.start - b.start || a.merges - b.merges,
  )) {
    // Calls side by side stand in the order in which they began, whichever answered first.
    let place = { at: Math.min(session.lineage.at, own[0]?.at ?? Infinity), rank: 0 }
    for (const id of before(own)) {
      const owner = owners.get(id)?.session
      const earlier = owner && owner !== session ? places.get(owner) : undefined
      if (earlier && order(earlier, place) >= 0) place = { at: earlier.at, rank: earlier.rank + 1 }
    }
    places.set(session, place)
  }
  const placeOf = ({ session }: Group) => places.get(session) as { at: number; rank: number }
  const rank = new Map(sessions.map((session, i) => [session, i]))
  const rankOf = ({ session }: Group) => rank.get(session) as number
  return groups.sort((a, b) => order(placeOf(a), placeOf(b)) || rankOf(a) - rankOf(b))
}

function order(a: { at: number; rank: number }, b: { at: number; rank: number }): number {
  return a.at - b.at || a.rank - b.rank
}

/** The chunks that these came after: the one before the first, and the heads of what was merged. */
function before(chunks: readonly Chunk[]): Digest[] {
  const previous = chunks[0] && previousOf(chunks[0])
  const heads = chunks
    .filter(isMerge)
    .flatMap(({ branches }) => branches.flatMap(({ head }) => (head === null ? [] : [head])))
  return previous ? [previous.id, ...heads] : heads
}

function isMerge(chunk: Chunk): chunk is Chunk<'merge'> {
  return chunk.kind === 'merge'
}

/** For every chunk the shortest history that holds it, among those on the branch that it was made on if there is one. */
function ownersOf(ordered: readonly Session[]): Map<Digest, { chunk: Chunk; session: Session }> {
  const owners = new Map<Digest, { chunk: Chunk; session: Session }>()
  for (const session of ordered) {
    for (const chunk of backwards(valueFrom(session).tip)) {
      if (owners.has(chunk.id)) break
      owners.set(chunk.id, { chunk, session })
    }
  }
  // A merge that took in the beginning of a branch is shorter than the branch.
  for (const session of ordered) {
    for (const chunk of backwards(valueFrom(session).tip)) {
      const owner = owners.get(chunk.id) as { chunk: Chunk; session: Session }
      if ((chunk.branch ?? '') !== session.branch) break
      if (owner.session === session) continue
      if (owner.session.branch === session.branch) break
      owner.session = session
    }
  }
  return owners
}

/** Of sessions with one history, the one whose own call wrote the last chunk. */
function isByItself(session: Session): boolean {
  return session.lineage.by !== undefined && session.chunks.at(-1)?.by === session.lineage.by
}

function verified(groups: readonly Group[]): Pick<History, 'checked' | 'problem'> {
  let checked = 0
  for (const { session, chunks } of groups) {
    for (const chunk of chunks) {
      const expected = identify({ ...chunk } as ChunkBody, previousOf(chunk)?.id)
      if (expected !== chunk.id) return { checked, problem: damage(session, chunk, expected) }
      checked++
    }
  }
  return { checked }
}

function damage(session: Session, chunk: Chunk, expected: Digest): Damage {
  return {
    session: session.id,
    index: chunk.index,
    reason: `chunk ${chunk.index} (${chunk.kind}) is recorded as ${chunk.id} and its content gives ${expected}`,
  }
}

/** Sessions by the lane they are on, those inside a tool or an effect apart. A placement on a lane does not begin another line of work. */
function linesOf(sessions: readonly Session[]): Map<string, Line> {
  const byLane = new Map<string, Line>()
  const names = new Map<string, number>()
  const ofSession = new Map<string, Line>()
  const callees = calleesOf(sessions)
  for (const session of sessions) {
    const callee = callees.get(session.id)
    const parts = (session.lineage.lane ?? '').split('/').filter(part => !part.startsWith('@'))
    const lane = [callee?.key ?? '', ...parts].join('/')
    let line = byLane.get(lane)
    if (line === undefined) {
      const base = session.branch === '' ? (callee?.name ?? 'trunk') : session.branch
      const times = (names.get(base) ?? 0) + 1
      names.set(base, times)
      const name = times === 1 ? base : `${base} (${times})`
      line = { index: byLane.size, name, began: session, sessions: [], events: [] }
      byLane.set(lane, line)
    }
    line.sessions.push(session)
    ofSession.set(session.id, line)
  }
  return ofSession
}

interface Callee {
  readonly key: string
  readonly name: string
}

/** Who works in sessions that were made inside a tool or an effect: the call says so, and what it began with and what came of it follow. */
function calleesOf(sessions: readonly Session[]): Map<string, Callee> {
  const callees = new Map<string, Callee>()
  const byId = new Map(sessions.map(session => [session.id, session]))
  for (const { id, lineage } of sessions) {
    const { inside } = lineage.extras
    if (isPlainObject(inside)) {
      callees.set(id, { key: `${id}`, name: lineage.by?.split('/').at(-1) ?? 'inside' })
      continue
    }
    const known = lineage.parents.map(parent => callees.get(parent)).find(callee => callee !== undefined)
    if (known) callees.set(id, known)
  }
  const children = new Map<string, (Callee | undefined)[]>()
  for (const { id, lineage } of sessions)
    for (const parent of lineage.parents) {
      const known = children.get(parent)
      if (known) known.push(callees.get(id))
      else children.set(parent, [callees.get(id)])
    }
  // What nobody but one such call went on from was made for it.
  for (const [id, of] of children) {
    const { parents = [id], operation } = byId.get(id)?.lineage ?? {}
    // Of a session that was placed for the call, the one before it was not kept.
    const isRoot = parents.length === 0 || (operation === 'to' && !parents.some(parent => byId.has(parent)))
    const [first] = of
    if (isRoot && first && of.every(callee => callee === first)) callees.set(id, first)
  }
  return callees
}
