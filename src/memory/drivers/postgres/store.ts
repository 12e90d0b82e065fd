import { RathError, show } from '../../../base/errors.ts'
import type { Session } from '../../../session/session.ts'
import { defaultFloor } from '../../calibrate.ts'
import { allCapabilities } from '../../capabilities.ts'
import {
  checkChange,
  checkEntries,
  checkFilter,
  checkForget,
  checkListLimit,
  checkQuery,
} from '../../check.ts'
import { planCommit } from '../../commit-plan.ts'
import { checkOpen, missingMemory } from '../../refusal.ts'
import { type ResourceLimits, readResource } from '../../resource.ts'
import type {
  CommitOptions,
  Committed,
  FindOptions,
  Found,
  Hit,
  Memory,
  MemoryCapabilities,
  MemoryChange,
  MemoryFilter,
  MemoryPage,
  MemoryRef,
  MemoryStore,
  MemoryTree,
  NewMemory,
  Resource,
  WriteOptions,
} from '../../spec.ts'
import { isWithin, parseRef, treeOf } from '../../uri.ts'
import { commitPlan, replaceResource } from './commit.ts'
import { matching, toForget, visible } from './filter.ts'
import { type Finding, findByWords, type Scored } from './find.ts'
import type { Pool, Queries } from './pool.ts'
import { columns, type EntryRow, toMemory } from './rows.ts'
import type { Vectors } from './vectors.ts'
import { dropEnded, forgetEntries, lockPlace, updateEntry, type Writing, writeEntries } from './write.ts'

export interface PostgresStoreParts {
  readonly name: string
  readonly pool: Pool
  readonly place: number
  /** Or why there are none although there is an embedding model. */
  readonly vectors?: Vectors | string
  readonly now: () => number
  readonly resources: ResourceLimits
}

/** Memories in a PostgreSQL database. */
export class PostgresStore implements MemoryStore {
  readonly name: string
  readonly backend = 'postgres'
  readonly capabilities: MemoryCapabilities
  readonly #parts: PostgresStoreParts
  readonly #pool: Pool
  readonly #place: number
  readonly #vectors: Vectors | undefined
  #closed = false

  constructor(parts: PostgresStoreParts) {
    this.name = parts.name
    this.#parts = parts
    this.#pool = parts.pool
    this.#place = parts.place
    this.#vectors = typeof parts.vectors === 'object' ? parts.vectors : undefined
    this.capabilities = allCapabilities(this.#vectors !== undefined)
  }

  async write(entries: readonly NewMemory[], options: WriteOptions = {}): Promise<readonly Memory[]> {
    const checked = checkEntries(entries)
    return this.#write(options, async writing => (await writeEntries(writing, checked)).kept)
  }

  async update(ref: MemoryRef, change: MemoryChange, options: WriteOptions = {}): Promise<Memory> {
    const checked = checkChange(change)
    return this.#write(options, async writing => {
      const row = await this.#row(writing.queries, ref)
      if (row === undefined) throw missingMemory(ref)
      return updateEntry(writing, row, checked)
    })
  }

  async read(ref: MemoryRef): Promise<Memory | null> {
    this.#check()
    const row = await this.#row(this.#pool, ref)
    return row ? toMemory(row) : null
  }

  async list(filter: MemoryFilter & { limit?: number; cursor?: string } = {}): Promise<MemoryPage> {
    this.#check()
    return listEntries(this.#finding(this.#pool), checkFilter(filter, 'list'))
  }

  async tree(uri?: string, { depth }: { readonly depth?: number } = {}): Promise<MemoryTree> {
    this.#check()
    const where = visible(this.#place, undefined, this.#parts.now())
    const rows = await this.#pool.query<{ scope: string; category: string; count: string }>(
      `SELECT scope, category, count(*) FROM openrath_memory.entry WHERE ${where} GROUP BY scope, category`,
      where.values,
    )
    return treeOf(
      rows.map(({ scope, category, count }) => [scope, category, Number(count)] as const),
      uri,
      depth,
    )
  }

  async find(query: string, options: FindOptions = {}): Promise<Found> {
    this.#check(options)
    const { query: text, limit } = checkQuery(query, options)
    const { mode = 'auto', floor = defaultFloor, signal, ...filter } = checkFilter(options, 'find')
    const vectors = this.#vectors
    const lacking = typeof this.#parts.vectors === 'string' ? this.#parts.vectors : undefined
    if (mode === 'vectors' && vectors === undefined) {
      const why = lacking ?? 'it was opened without an embedding model'
      throw new RathError('memory-unsupported', `The memory ${this.name} cannot find by meaning: ${why}.`)
    }
    const asked = mode === 'words' || text.trim() === '' ? undefined : await vectors?.ask(text, signal)
    const finding = this.#finding(this.#pool)
    const byWords = mode === 'vectors' && asked?.vector ? [] : await findByWords(finding, text, filter)
    const joined =
      asked?.vector && mode !== 'words'
        ? await vectors?.join(finding, asked.vector, filter, byWords, mode)
        : undefined
    const fellBack = asked?.fellBack ?? (mode === 'auto' ? lacking : undefined)
    return {
      hits: await this.#hits((joined ?? byWords).filter(({ score }) => score >= floor).slice(0, limit)),
      mode: joined === undefined ? 'words' : mode === 'vectors' ? 'vectors' : 'both',
      ...(fellBack !== undefined && { fellBack }),
    }
  }

  async forget(what: MemoryRef | MemoryFilter, options: WriteOptions = {}): Promise<number> {
    const filter = typeof what === 'string' ? undefined : checkForget(what, this.name)
    return this.#write(options, async writing => {
      await dropEnded(writing)
      const where = filter && toForget(this.#place, filter, writing.now)
      const rows = where
        ? await writing.queries.query<EntryRow>(
            `SELECT n, id, scope, key FROM openrath_memory.entry WHERE ${where}`,
            where.values,
          )
        : [await this.#row(writing.queries, what as string)].filter(row => row !== undefined)
      await forgetEntries(writing, rows)
      return rows.length
    })
  }

  async history(ref: MemoryRef): Promise<readonly Memory[]> {
    this.#check()
    return this.#pool.transaction(async queries => {
      await queries.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
      const row = await this.#row(queries, ref)
      if (row === undefined) throw missingMemory(ref)
      const old = await queries.query<{ body: string }>(
        'SELECT body FROM openrath_memory.revision WHERE place = $1 AND id = $2 ORDER BY version',
        [this.#place, row.id],
      )
      return [...old.map(({ body }) => JSON.parse(body) as Memory), toMemory(row)]
    })
  }

  async commit(session: Session, options: CommitOptions = {}): Promise<Committed> {
    const plan = planCommit(session, options, this.name)
    return this.#write(options, writing => commitPlan(writing, plan))
  }

  async ingest(resource: Resource, options: WriteOptions = {}): Promise<readonly Memory[]> {
    this.#check(options)
    const read = await readResource(resource, this.#parts.resources, options.signal)
    const entries = checkEntries(read.entries)
    return this.#write(options, writing => replaceResource(writing, read, entries))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#vectors?.close()
    await this.#pool.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #write<T>(options: WriteOptions, work: (writing: Writing) => Promise<T>): Promise<T> {
    this.#check(options)
    const result = await this.#pool.transaction(async queries => {
      const writing = { queries, place: this.#place, now: this.#parts.now() }
      await lockPlace(writing)
      return work(writing)
    })
    this.#vectors?.wake()
    return result
  }

  #check({ signal }: { readonly signal?: AbortSignal } = {}): void {
    checkOpen(this.name, this.#closed, signal)
  }

  #finding(queries: Queries) {
    return { queries, place: this.#place, now: this.#parts.now() }
  }

  /** The living entry that a reference names. */
  async #row(queries: Queries, ref: MemoryRef): Promise<EntryRow | undefined> {
    const named = parseRef(ref)
    // The server refuses the zero character, which no id has.
    if (named === undefined || named.id.includes('\0')) return undefined
    const [row] = await queries.query<EntryRow>(
      `SELECT ${columns} FROM openrath_memory.entry WHERE place = $1 AND id = $2 AND (expires IS NULL OR expires > $3)`,
      [this.#place, named.id.toWellFormed(), this.#parts.now()],
    )
    return row && isWithin(row.scope, named.within) ? row : undefined
  }

  async #hits(scored: readonly Scored[]): Promise<Hit[]> {
    const rows = await this.#pool.query<EntryRow>(
      `SELECT ${columns} FROM openrath_memory.entry WHERE n = ANY ($1::bigint[])`,
      [scored.map(({ n }) => n)],
    )
    const byNumber = new Map(rows.map(row => [row.n, row]))
    return scored.flatMap(({ n, score }) => {
      const row = byNumber.get(n)
      return row ? [{ ...toMemory(row), score }] : []
    })
  }
}

/** The newest first. */
async function listEntries(
  { queries, place, now }: Finding,
  { limit = 50, cursor, ...filter }: MemoryFilter & { limit?: number; cursor?: string },
): Promise<MemoryPage> {
  checkListLimit(limit)
  const where = matching(place, filter, now)
  if (cursor !== undefined) {
    const [at, n] = parseCursor(cursor)
    where.add(`(happened, n) < ($::float8, ${n}::bigint)`, at)
  }
  const rows = await queries.query<EntryRow>(
    `SELECT ${columns} FROM openrath_memory.entry WHERE ${where} ORDER BY happened DESC, n DESC LIMIT ${limit + 1}`,
    where.values,
  )
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const entries = page.map(toMemory)
  return rows.length > limit && last ? { entries, cursor: `${last.happened}:${last.n}` } : { entries }
}

function parseCursor(cursor: unknown): [number, string] {
  const [, at, n] = (typeof cursor === 'string' && /^(-?\d[\d.e+]*):(\d{1,18})$/.exec(cursor)) || []
  if (at !== undefined && n !== undefined) return [Number(at), n]
  throw new RathError(
    'invalid-argument',
    `${show(cursor)} is no cursor of a list; take it from the page before.`,
  )
}
