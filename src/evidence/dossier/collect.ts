import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { timeOf } from '../../base/ids.ts'
import { promptId } from '../../run/prompt.ts'
import { backwards } from '../../session/chain.ts'
import { sessionGraph } from '../../session/graph.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { RunRow, SessionRow, Store } from '../../store/spec.ts'
import type { Material } from './material.ts'

/** Beyond this many sessions the rest is left out, and the dossier says so. */
const mostSessions = 10_000

/**
 * Reads what belongs to a run, by its id, or to a session, by id, prefix or tag: what the result came from, and the branches beside it that
 * were begun in its time. Linear in the chunks of those, and in the sessions of the store, whose rows it reads once; of others made in a
 * run's time it reads those whose parents were not kept.
 */
export async function collect(store: Store, name: string): Promise<Material> {
  const run = await runOf(store, name)
  const final = await store.sessions.get(run ? sessionIn(run) : name)
  const known = await Known.of(store)
  if (run?.input) await known.walkBack(run.input)
  const before = new Set(known.ids())
  await known.walkBack(final.id)
  if (run) await walkRun(run, known, before)
  else {
    known.walkDown({ from: known.ids(), since: 0, until: endOf(final) })
    await known.walkMerges()
  }
  return {
    final: known.sessions.get(final.id) as Session,
    sessions: known.inOrder().map(id => known.sessions.get(id) as Session),
    ...(run && { run, journal: await store.runs.journal(run.id) }),
    prompts: await promptsOf(store, known.prompts),
    missing: [...known.missing],
    more: known.isFull,
  }
}

async function runOf(store: Store, name: string): Promise<RunRow | undefined> {
  try {
    return await store.runs.get(name)
  } catch (error) {
    if (error instanceof RathError && error.code === 'unknown-run') return undefined
    throw error
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

interface Window {
  /** Sessions whose children are looked for. */
  readonly from: readonly string[]
  readonly since: number
  readonly until: number
  /** Made last: what came of it came later, whatever the clock says. */
  readonly last?: string
}

/** Whatever was made of the input, or of what was made of it, while the run went on. One finding may lead to another. */
async function walkRun(run: RunRow, known: Known, before: ReadonlySet<string>): Promise<void> {
  const input = known.rows.get(run.input ?? '')
  for (let size = -1; known.rows.size > size && !known.isFull; ) {
    size = known.rows.size
    const window = windowOf(run, known, before)
    known.walkDown(window)
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
  /** Those that answers name. */
  readonly prompts = new Set<Digest>()
  isFull = false
  readonly #store: Store
  readonly #all = new Map<string, SessionRow>()
  readonly #children = new Map<string, SessionRow[]>()
  readonly #seen = new Set<Digest>()
  /** Without parents, and of another history. */
  readonly #foreign = new Set<string>()

  private constructor(store: Store) {
    this.#store = store
  }

  static async of(store: Store): Promise<Known> {
    const known = new Known(store)
    let cursor: string | undefined
    do {
      const page = await store.sessions.list({ limit: 1000, ...(cursor !== undefined && { cursor }) })
      for (const row of page.rows) known.#note(row)
      cursor = page.cursor
    } while (cursor !== undefined)
    return known
  }

  #note(row: SessionRow): void {
    this.#all.set(row.id, row)
    for (const parent of row.lineage.parents) {
      const children = this.#children.get(parent)
      if (children) children.push(row)
      else this.#children.set(parent, [row])
    }
  }

  /** What a session came from, with all that was merged on the way. */
  async walkBack(id: string): Promise<void> {
    this.walkUp(id)
    await this.walkMerges()
  }

  /** What a session came from by lineage. */
  walkUp(id: string): void {
    const queue = new Set([id])
    for (const here of queue) {
      if (this.rows.has(here) || this.missing.has(here)) continue
      const row = this.#all.get(here)
      if (row) this.rows.set(here, row)
      else this.missing.add(here)
      for (const parent of row?.lineage.parents ?? []) queue.add(parent)
    }
    if (this.rows.size >= mostSessions) this.isFull = true
  }

  /** What came of sessions in a time. Ids that no row has are asked about, too: two branches may have only such a parent in common. */
  walkDown({ from, since, until, last }: Window): void {
    const queue = new Set(from)
    for (const id of queue) {
      if (id === last) continue
      for (const { id: child, lineage } of this.#children.get(id) ?? []) {
        if (this.isFull) return
        if (lineage.at < since || lineage.at > until) continue
        queue.add(child)
        this.walkUp(child)
      }
    }
  }

  /** What went on from a session in a time where no lineage says so, since no parent of it was kept. */
  async walkUnparented({ since, until }: Window, { head, length: least }: SessionRow): Promise<void> {
    for (const { id, lineage, length } of this.#all.values()) {
      if (this.isFull) return
      if (this.rows.has(id) || length < least || lineage.at < since || lineage.at > until) continue
      if (lineage.parents.some(parent => this.#all.has(parent)) || this.#foreign.has(id)) continue
      const { tip } = valueFrom(await this.#store.sessions.get(id))
      if (backwards(tip).some(chunk => chunk.id === head)) this.walkUp(id)
      else this.#foreign.add(id)
    }
  }

  /** Loads the sessions, and finds those they merged: lineages say it too, but not every session of a lineage is kept. */
  async walkMerges(): Promise<void> {
    for (const id of this.rows.keys()) {
      if (this.sessions.has(id)) continue
      const session = await this.#store.sessions.get(id)
      this.sessions.set(id, session)
      for (const chunk of backwards(valueFrom(session).tip)) {
        if (this.#seen.has(chunk.id)) break
        this.#seen.add(chunk.id)
        if (chunk.kind === 'assistant' && chunk.prompt !== undefined) this.prompts.add(chunk.prompt)
        if (chunk.kind === 'merge' && !this.isFull)
          for (const branch of chunk.branches) this.walkUp(branch.session)
      }
    }
  }

  ids(): string[] {
    return [...this.rows.keys(), ...this.missing]
  }

  inOrder(): string[] {
    const rows = [...this.rows.values()].sort((one, other) => one.lineage.at - other.lineage.at)
    const nodes = rows.map(({ id, lineage }) => ({
      id,
      lineage: { ...lineage, parents: lineage.parents.filter(parent => this.rows.has(parent)) },
    }))
    return sessionGraph(nodes).nodes.map(node => node.id)
  }
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
