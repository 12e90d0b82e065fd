import type { Digest } from '../../base/digest.ts'
import { backwards, previousOf } from '../../session/chain.ts'
import type { Chunk, ChunkBody } from '../../session/chunk.ts'
import { identify, identityOf } from '../../session/identity.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { Integrity } from './dossier.ts'
import type { Material } from './material.ts'

/** Something that happened: a chunk, where it was first recorded. */
export interface Event {
  /** Its number, from 1. */
  readonly n: number
  readonly chunk: Chunk
  readonly session: Session
  readonly lane: Line
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
  readonly checked: number
  readonly problem?: NonNullable<Integrity['problem']>
}

/**
 * Every chunk of the sessions once, its digest computed anew. A chunk that was merged in behind others is the one it was on its branch.
 * Linear in chunks: a history that sessions share is walked once.
 */
export function historyOf({ final, sessions }: Material): History {
  const lines = linesOf(sessions)
  const inFinal = new Set<Digest>()
  for (const chunk of backwards(valueFrom(final).tip)) inFinal.add(identityOf(chunk))
  const events: Event[] = []
  const byChunk = new Map<Digest, Event>()
  const seen = new Set<Digest>()
  let problem: Integrity['problem']
  for (const session of sessions) {
    const lane = lines.get(session.id) as Line
    for (const chunk of freshIn(session, seen)) {
      const expected = identify({ ...chunk } as ChunkBody, previousOf(chunk)?.id)
      if (expected !== chunk.id) problem ??= damage(session, chunk, expected)
      const identity = identityOf(chunk)
      const known = byChunk.get(identity)
      if (known) {
        byChunk.set(chunk.id, known)
        continue
      }
      const event = { n: events.length + 1, chunk, session, lane, inFinal: inFinal.has(identity) }
      events.push(event)
      lane.events.push(event)
      byChunk.set(identity, event).set(chunk.id, event)
    }
  }
  return {
    events,
    lines: [...new Set(lines.values())],
    lineOf: lines,
    byChunk,
    checked: seen.size,
    ...(problem && { problem }),
  }
}

/** The chunks of a session that no session before it had, oldest first. */
function freshIn(session: Session, seen: Set<Digest>): Chunk[] {
  const fresh: Chunk[] = []
  for (const chunk of backwards(valueFrom(session).tip)) {
    if (seen.has(chunk.id)) break
    seen.add(chunk.id)
    fresh.push(chunk)
  }
  return fresh.reverse()
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
