import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { timeOf } from '../../base/ids.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import { backwards } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import { sessionGraph } from '../../session/graph.ts'
import { type Lineage, namedBy } from '../../session/lineage.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { JournalEntry, RunRow, SessionRow, Store } from '../../store/spec.ts'
import { sessionsMade } from '../entry.ts'
import { promptId } from '../prompt.ts'
import { type Material, rowOf, rowsOf, runOf, sessionsInside, sessionsNamed } from './rows.ts'

/** Beyond this many sessions the rest is left out, and the dossier says so. */
const mostSessions = 10_000

/**
 * Reads what belongs to a run, by its id, or to a session, by id, prefix or tag: what the result came from, the branches beside it that were
 * begun in its time, and the sessions that tools and effects made inside. Linear in the chunks of those, whatever else the store holds; for a
 * run recorded before 0.2, which does not say what it made, in the sessions of the store, too.
 */
export async function collect(store: Store, name: string): Promise<Material> {
  const run = await runOf(store, name)
  if (!run) return collectAround(store, name, 'its time')
  const known = new Known(store)
  const final = (await store.sessions.row(sessionIn(run))).id
  const journal = await store.runs.journal(run.id)
  await walkRun(run, journal, final, known)
  return { ...(await materialOf(known, final, store)), run, journal }
}

/** What is connected with a session, in all time or until its last chunk. */
export async function collectAround(
  store: Store,
  name: string,
  until: 'its time' | 'now' = 'now',
): Promise<Material> {
  const known = new Known(store)
  const final = (await store.sessions.row(name)).id
  await known.walkAround(final, until === 'now')
  return materialOf(known, final, store)
}

async function materialOf(known: Known, final: string, store: Store): Promise<Material> {
  const sessions = withoutMadeAgain(known.sessions, known.made, final)
  return {
    final: sessions.get(final) as Session,
    sessions: inOrder([...sessions.values()]),
    prompts: await promptsOf(store, known.prompts),
    missing: [...known.missing],
    more: known.isFull,
  }
}

function sessionIn({ id, input, output }: RunRow): string {
  const session = output ?? input
  if (session !== null) return session
  throw new RathError(
    'unknown-session',
    `Run ${id} has recorded no session yet; look again when it has begun.`,
  )
}

/** What a run made, and what its input came from. */
async function walkRun(
  run: RunRow,
  journal: readonly JournalEntry[],
  final: string,
  known: Known,
): Promise<void> {
  if (run.input !== null) await known.walkBack(run.input)
  const before = new Set(known.ids())
  const made = sessionsMade(journal)
  known.addRun(run.id, made)
  for (const id of made.keys()) await known.walkUp(id)
  await known.walkBack(final)
  if (made.size === 0) await walkUnlisted(run, known, before)
}

interface Window {
  /** Sessions whose children are looked for. */
  readonly from: readonly string[]
  readonly since: number
  readonly until: number
  /** Made last: what came of it came later, whatever the clock says. */
  readonly last?: string
}

/**
 * For a run recorded before 0.2: whatever was made of the input, or of what was made of it, while the run went on. One finding may lead to
 * another.
 */
async function walkUnlisted(run: RunRow, known: Known, before: ReadonlySet<string>): Promise<void> {
  const input = known.rows.get(run.input ?? '')
  for (let size = -1; known.rows.size > size && !known.isFull; ) {
    size = known.rows.size
    const window = windowOf(run, known, before)
    await known.walkDown(window)
    if (input) await known.walkUnparented(window, input)
    await known.walkMerges()
  }
}

/** Its first calls are older than its row, which the first effect writes. */
function windowOf(run: RunRow, known: Known, before: ReadonlySet<string>): Window {
  const own = known.ids().filter(id => !before.has(id))
  const times = own.map(id => known.rows.get(id)?.lineage.at ?? run.created)
  const since = times.reduce(
    (one, other) => Math.min(one, other),
    Math.min(run.created, timeOf(run.id) ?? run.created),
  )
  // Whoever drives it has it for so long yet, and writes to its row only at its end.
  const until = Math.max(since, run.updated, run.leaseUntil)
  const last = run.status === 'done' && run.output !== null ? { last: run.output } : {}
  return { from: run.input === null ? own : [run.input, ...own], since, until, ...last }
}

function endOf(session: Session): number {
  return Math.max(session.lineage.at, session.chunks.at(-1)?.at ?? 0)
}

class Known {
  readonly rows = new Map<string, SessionRow>()
  readonly sessions = new Map<string, Session>()
  readonly missing = new Set<string>()
  /** What runs made, and in which of their drives. */
  readonly made = new Map<string, ReadonlyMap<string, number>>()
  /** Those that answers name. */
  readonly prompts = new Set<Digest>()
  isFull = false
  readonly #store: Store
  readonly #seen = new Set<Digest>()
  readonly #asked = new Set<string>()
  /** Without parents, and of another history. */
  readonly #foreign = new Set<string>()

  constructor(store: Store) {
    this.#store = store
  }

  addRun(run: string, made: ReadonlyMap<string, number>): void {
    this.made.set(run, made)
  }

  /** What a session came from, with all that was merged on the way. */
  async walkBack(id: string): Promise<void> {
    await this.walkUp(id)
    await this.walkMerges()
  }

  /** What a session came from by lineage. */
  async walkUp(id: string): Promise<void> {
    const queue = new Set([id])
    for (const here of queue) {
      if (this.rows.has(here) || this.missing.has(here) || this.isFull) continue
      const row = await rowOf(this.#store, here)
      if (row) this.rows.set(here, row)
      else this.missing.add(here)
      for (const before of row ? namedBy(row.lineage) : []) queue.add(before)
      if (this.rows.size >= mostSessions) this.isFull = true
    }
  }

  /** What is connected with a session: what it came from, the runs that made any of it, and what else came of that until its end. */
  async walkAround(id: string, always: boolean): Promise<void> {
    await this.walkBack(id)
    const until = always ? Infinity : endOf(this.sessions.get(id) as Session)
    const isInTime = ({ lineage }: SessionRow) => lineage.at <= until
    for (let size = -1; this.rows.size > size && !this.isFull; ) {
      size = this.rows.size
      for (const { lineage } of [...this.rows.values()]) await this.#walkRunOf(lineage, isInTime)
      await this.walkDown({ from: this.ids(), since: 0, until })
      await this.walkMerges()
    }
  }

  async #walkRunOf({ extras }: Lineage, isWanted: (row: SessionRow) => boolean): Promise<void> {
    const { run } = extras
    if (typeof run !== 'string' || this.made.has(run)) return
    const row = await runOf(this.#store, run)
    const made = row ? sessionsMade(await this.#store.runs.journal(run)) : new Map<string, number>()
    this.made.set(run, made)
    for (const id of made.keys()) {
      const kept = await rowOf(this.#store, id)
      if (kept && isWanted(kept)) await this.walkUp(id)
    }
  }

  /** What came of sessions in a time. Ids that no row has are asked about, too: two branches may have only such a parent in common. */
  async walkDown({ from, since, until, last }: Window): Promise<void> {
    const queue = new Set(from)
    for (const id of queue) {
      if (id === last) continue
      for (const { id: child, lineage } of await this.#childrenOf(id)) {
        if (this.isFull) return
        // By steps that were not kept it may have come from what was made last.
        if (last !== undefined && !lineage.parents.includes(id)) continue
        if (lineage.at < since || lineage.at > until) continue
        queue.add(child)
        await this.walkUp(child)
      }
    }
  }

  /** Of a session whose children were looked for before, none. */
  async #childrenOf(parent: string): Promise<SessionRow[]> {
    if (this.#asked.has(parent)) return []
    this.#asked.add(parent)
    const children: SessionRow[] = []
    for await (const row of rowsOf(this.#store, { parent })) children.push(row)
    return children
  }

  /** What went on from a session in a time where no lineage says so, since no parent of it was kept. */
  async walkUnparented({ since, until }: Window, { head, length: least }: SessionRow): Promise<void> {
    for await (const { id, lineage, length } of rowsOf(this.#store, {})) {
      if (this.isFull) return
      if (this.rows.has(id) || length < least || lineage.at < since || lineage.at > until) continue
      if (this.#foreign.has(id)) continue
      const parents = await Promise.all(lineage.parents.map(parent => rowOf(this.#store, parent)))
      if (parents.some(parent => parent !== undefined)) continue
      const { tip } = valueFrom(await this.#store.sessions.get(id))
      if (backwards(tip).some(chunk => chunk.id === head)) await this.walkUp(id)
      else this.#foreign.add(id)
    }
  }

  /** Loads the sessions, and finds those they merged, and those that were made inside them: not every session of a lineage is kept. */
  async walkMerges(): Promise<void> {
    for (const id of this.rows.keys()) {
      if (this.sessions.has(id)) continue
      const session = await this.#store.sessions.get(id)
      this.sessions.set(id, session)
      for (const chunk of backwards(valueFrom(session).tip)) {
        if (this.#seen.has(chunk.id)) break
        this.#seen.add(chunk.id)
        if (chunk.kind === 'assistant' && chunk.prompt !== undefined) this.prompts.add(chunk.prompt)
        for (const other of sessionsNamed(chunk)) await this.walkUp(other)
      }
    }
  }

  ids(): string[] {
    return [...this.rows.keys(), ...this.missing]
  }
}

/** Parents before children. */
function inOrder(sessions: readonly Session[]): Session[] {
  const byId = new Map(sessions.map(session => [session.id, session]))
  const nodes = sessions
    .toSorted((one, other) => one.lineage.at - other.lineage.at)
    .map(({ id, lineage }) => ({
      id,
      lineage: { ...lineage, parents: namedBy(lineage).filter(parent => byId.has(parent)) },
    }))
  return sessionGraph(nodes).nodes.map(node => byId.get(node.id) as Session)
}

async function promptsOf(store: Store, wanted: ReadonlySet<Digest>): Promise<Map<Digest, string>> {
  const prompts = new Map<Digest, string>()
  for (const digest of wanted) {
    try {
      const prompt = await store.sessions.get(promptId(digest))
      prompts.set(digest, prompt.chunks.map(chunk => chunk.text).join('\n'))
    } catch (error) {
      if (!(error instanceof RathError && error.code === 'unknown-session')) throw error
    }
  }
  return prompts
}

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
