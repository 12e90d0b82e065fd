import { canonicalJson, type Json } from '../../base/json.ts'
import { backwards } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { sessionsInside } from './rows.ts'

/** Of each run, the sessions it made and in which of its drives. */
type Made = ReadonlyMap<string, ReadonlyMap<string, number>>

/**
 * A run that is resumed makes its sessions again, with what is on record. Of its earlier drives only those sessions count in which
 * something was done that no later drive took up, with what they came from; the others are the same work a second time. Linear in the
 * chunks of resumed runs.
 */
export function withoutMadeAgain(
  sessions: ReadonlyMap<string, Session>,
  made: Made,
  final?: string,
): Map<string, Session> {
  const left = new Map(sessions)
  for (const drives of made.values()) {
    const last = [...drives.values()].reduce((one, other) => Math.max(one, other), 0)
    if ([...drives.values()].every(drive => drive === last)) continue
    const ofRun = [...drives].flatMap(([id, drive]) => {
      const session = sessions.get(id)
      return session ? [{ session, drive }] : []
    })
    for (const id of madeAgain(ofRun)) if (id !== final) left.delete(id)
  }
  if (left.size < sessions.size) keepNamed(left, sessions)
  return left
}

interface Driven {
  readonly session: Session
  readonly drive: number
}

/** Ids of sessions whose every effect a later drive has, too. */
function madeAgain(ofRun: readonly Driven[]): string[] {
  const known = new Set<string>()
  const later = new Map<string, number>()
  const again: string[] = []
  for (const drive of [...new Set(ofRun.map(one => one.drive))].sort((a, b) => b - a)) {
    const ofDrive = ofRun.filter(one => one.drive === drive).map(({ session }) => session)
    const pool = new Map(later)
    const own: string[] = []
    // The longest first: others of one drive share its chunks.
    for (const session of ofDrive.toSorted((a, b) => b.length - a.length)) {
      const effects: string[] = []
      for (const chunk of backwards(valueFrom(session).tip)) {
        if (known.has(chunk.id)) break
        known.add(chunk.id)
        const effect = effectOf(chunk)
        if (effect !== undefined) effects.push(effect)
      }
      if (later.size > 0 && take(effects, pool)) again.push(session.id)
      else own.push(...effects)
    }
    for (const effect of own) later.set(effect, (later.get(effect) ?? 0) + 1)
  }
  return again
}

/** Takes all of them out of the pool, or none. */
function take(effects: readonly string[], pool: Map<string, number>): boolean {
  const wanted = new Map<string, number>()
  for (const effect of effects) wanted.set(effect, (wanted.get(effect) ?? 0) + 1)
  for (const [effect, times] of wanted) if ((pool.get(effect) ?? 0) < times) return false
  for (const [effect, times] of wanted) pool.set(effect, (pool.get(effect) ?? 0) - times)
  return true
}

/** What was done, as a text that is the same when it is taken from the record; undefined for what no effect gave. */
function effectOf(chunk: Chunk): string | undefined {
  const { kind, by = null } = chunk
  const about = (...parts: readonly unknown[]) => canonicalJson([kind, by, ...parts] as Json)
  switch (chunk.kind) {
    case 'assistant':
      return about(chunk.content)
    case 'tool-result': {
      const { tool, args = null, outcome } = chunk
      // One that was cut off has no outcome: the drive that took it up ran it.
      return outcome.kind === 'error' && outcome.error === 'cancelled'
        ? undefined
        : about(tool, args, outcome)
    }
    case 'effect':
      return about(chunk.name, chunk.request ?? null, chunk.outcome)
    case 'approval':
      return chunk.verdict === undefined ? undefined : about(chunk.approval, chunk.verdict)
    case 'memory':
      return about(chunk.op, chunk.store, chunk.query ?? null, chunk.entries ?? null)
    case 'route':
      return about(chunk.choice, chunk.reason ?? null)
    case 'compress':
      return about(chunk.summary)
    default:
      return undefined
  }
}

/** What is left needs those it came from, and those made inside it. */
function keepNamed(left: Map<string, Session>, all: ReadonlyMap<string, Session>): void {
  const seen = new Set<string>()
  for (const session of left.values()) {
    const named = [...session.lineage.parents]
    for (const chunk of backwards(valueFrom(session).tip)) {
      if (seen.has(chunk.id)) break
      seen.add(chunk.id)
      named.push(...sessionsInside(chunk))
    }
    for (const id of named) {
      const other = left.has(id) ? undefined : all.get(id)
      if (other) left.set(id, other)
    }
  }
}
