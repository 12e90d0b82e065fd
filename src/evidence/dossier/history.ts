import type { Digest } from '../../base/digest.ts'
import { backwards, previousOf } from '../../session/chain.ts'
import type { Chunk, ChunkBody } from '../../session/chunk.ts'
import { identify, identityOf } from '../../session/identity.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { Integrity } from './dossier.ts'
import type { Material } from './material.ts'

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
  readonly began: Session
  readonly sessions: Session[]
  readonly events: Event[]
}

export interface History {
  readonly events: readonly Event[]
  readonly lines: readonly Line[]
  readonly lineOf: ReadonlyMap<string, Line>
  /** Events by chunk id and by what stays the same however often a chunk is merged. */
  readonly byChunk: ReadonlyMap<Digest, Event>
  /** Chunks whose digest was computed anew. */
  readonly checked: number
  readonly problem?: NonNullable<Integrity['problem']>
}

/**
 * Every chunk of the sessions once. The session of a call has all that the calls inside it did, so a chunk belongs to the shortest history
 * that holds it; one that was merged in behind others is the one it was on its branch. Linear in chunks: what sessions share is walked once.
 */
export function historyOf({ final, sessions }: Material): History {
  const lineOf = linesOf(sessions)
  const inFinal = new Set<Digest>()
  for (const chunk of backwards(valueFrom(final).tip)) inFinal.add(identityOf(chunk))
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
  return { events, lines: [...new Set(lineOf.values())], lineOf, byChunk, ...verified(groups) }
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
    let place = { at: own[0]?.at ?? session.lineage.at, rank: 0 }
    for (const id of before(own)) {
      const owner = owners.get(id)?.session
      const earlier = owner && owner !== session ? places.get(owner) : undefined
      if (earlier && order(earlier, place) >= 0) place = { at: earlier.at, rank: earlier.rank + 1 }
    }
    places.set(session, place)
  }
  const placeOf = ({ session }: Group) => places.get(session) as { at: number; rank: number }
  return groups.sort((a, b) => order(placeOf(a), placeOf(b)))
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

function damage(session: Session, chunk: Chunk, expected: Digest): NonNullable<Integrity['problem']> {
  return {
    session: session.id,
    index: chunk.index,
    reason: `chunk ${chunk.index} (${chunk.kind}) is recorded as ${chunk.id} and its content gives ${expected}`,
  }
}

/** Sessions by the lane they are on. A placement on a lane does not begin another line of work. */
function linesOf(sessions: readonly Session[]): Map<string, Line> {
  const byLane = new Map<string, Line>()
  const names = new Map<string, number>()
  const ofSession = new Map<string, Line>()
  for (const session of sessions) {
    const lane = (session.lineage.lane ?? '')
      .split('/')
      .filter(part => !part.startsWith('@'))
      .join('/')
    let line = byLane.get(lane)
    if (line === undefined) {
      const base = session.branch === '' ? 'trunk' : session.branch
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
