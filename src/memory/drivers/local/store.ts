import { RathError } from '../../../base/errors.ts'
import type { Session } from '../../../session/session.ts'
import { allCapabilities } from '../../capabilities.ts'
import { checkChange, checkEntries, checkFilter, checkForget, checkQuery } from '../../check.ts'
import { planCommit } from '../../commit-plan.ts'
import { checkOpen, missingMemory } from '../../refusal.ts'
import { type ResourceLimits, readResource } from '../../resource.ts'
import type {
  CommitOptions,
  Committed,
  FindOptions,
  Found,
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
import type { Database, Row } from './database.ts'
import { accepting } from './filter.ts'
import { findByWords, hitsOf } from './find.ts'
import { listEntries, toForget } from './list.ts'
import { mergeIfDue } from './merge.ts'
import { Names } from './names.ts'
import { Ranker } from './rank.ts'
import { parsed, toMemory } from './rows.ts'
import type { Vectors } from './vectors.ts'
import { WordIndex } from './word-index.ts'
import { forgetEntry, removeEnded, updateEntry, type Writing, writeEntries } from './write.ts'

export interface LocalStoreParts {
  readonly name: string
  readonly db: Database
  readonly vectors?: Vectors
  readonly now: () => number
  readonly resources: ResourceLimits
}

/** Entries that have ended are removed a few at a time. */
const endedAtOnce = 256

/** Memories in one SQLite file. */
export class LocalStore implements MemoryStore {
  readonly name: string
  readonly backend = 'local'
  readonly capabilities: MemoryCapabilities
  readonly #db: Database
  readonly #names: Names
  readonly #index = new WordIndex()
  readonly #ranker = new Ranker()
  readonly #vectors: Vectors | undefined
  readonly #now: () => number
  readonly #resources: ResourceLimits
  #closed = false

  constructor({ name, db, vectors, now, resources }: LocalStoreParts) {
    this.name = name
    this.capabilities = allCapabilities(vectors !== undefined)
    this.#db = db
    this.#names = new Names(db)
    this.#vectors = vectors
    this.#now = now
    this.#resources = resources
  }

  async write(entries: readonly NewMemory[], options: WriteOptions = {}): Promise<readonly Memory[]> {
    const checked = checkEntries(entries)
    return this.#write(options, writing => writeEntries(writing, checked).kept)
  }

  async update(ref: MemoryRef, change: MemoryChange, options: WriteOptions = {}): Promise<Memory> {
    const checked = checkChange(change)
    return this.#write(options, writing => {
      const row = this.#row(ref)
      if (row === undefined) throw missingMemory(ref)
      return updateEntry(writing, row, checked)
    })
  }

  async read(ref: MemoryRef): Promise<Memory | null> {
    return this.#read({}, () => {
      const row = this.#row(ref)
      return row ? toMemory(row, this.#names, this.#db.path) : null
    })
  }

  async list(filter: MemoryFilter & { limit?: number; cursor?: string } = {}): Promise<MemoryPage> {
    const checked = checkFilter(filter, 'list')
    return this.#read({}, () => {
      this.#index.sync(this.#db)
      return listEntries({ ...this.#here(), index: this.#index }, checked)
    })
  }

  async tree(uri?: string, { depth }: { readonly depth?: number } = {}): Promise<MemoryTree> {
    return this.#read({}, () => {
      this.#index.sync(this.#db)
      return treeOf(this.#counts(), uri, depth)
    })
  }

  async find(query: string, options: FindOptions = {}): Promise<Found> {
    const { query: text } = checkQuery(query, options)
    const filter = checkFilter(options, 'find')
    const { mode = 'auto', signal } = options
    if (mode === 'vectors' && this.#vectors === undefined) {
      throw new RathError(
        'memory-unsupported',
        `The memory ${this.name} has no embedding model: open it with embed, or find by words.`,
      )
    }
    const asked = mode === 'words' || text.trim() === '' ? undefined : await this.#vectors?.ask(text, signal)
    return this.#read(options, () => {
      this.#index.sync(this.#db)
      const finding = { ...this.#here(), index: this.#index, ranker: this.#ranker }
      const byWords = mode === 'vectors' && asked?.vector ? undefined : findByWords(finding, text, filter)
      const byBoth = asked?.vector ? this.#vectors?.join(finding, asked.vector, filter, byWords) : undefined
      const found = byBoth === undefined ? 'words' : mode === 'vectors' ? 'vectors' : 'both'
      return {
        hits: hitsOf(finding, byBoth ?? byWords ?? [], options),
        mode: found,
        ...(asked?.fellBack !== undefined && { fellBack: asked.fellBack }),
      }
    })
  }

  async forget(what: MemoryRef | MemoryFilter, options: WriteOptions = {}): Promise<number> {
    const filter = typeof what === 'string' ? undefined : checkForget(what, this.name)
    return this.#write(options, writing => {
      const { db } = writing
      // Nobody can name what has ended, and whoever forgets wants it gone.
      removeEnded(writing, -1)
      const one = filter ? undefined : this.#row(what as string)
      const rows = filter ? [...toForget(writing, filter)] : one ? [one] : []
      for (const row of rows) forgetEntry(db, row)
      return rows.length
    })
  }

  async history(ref: MemoryRef): Promise<readonly Memory[]> {
    return this.#read({}, () => {
      const row = this.#row(ref)
      if (row === undefined) throw missingMemory(ref)
      const old = this.#db.all('SELECT body FROM revision WHERE id = ? ORDER BY version', row.id as string)
      return [
        ...old.map(({ body }) => parsed<Memory>(body as string, this.#db.path)),
        toMemory(row, this.#names, this.#db.path),
      ]
    })
  }

  async commit(session: Session, options: CommitOptions = {}): Promise<Committed> {
    const plan = planCommit(session, options, this.name)
    return this.#write(options, writing => commitPlan(writing, plan))
  }

  async ingest(resource: Resource, options: WriteOptions = {}): Promise<readonly Memory[]> {
    this.#check(options)
    const read = await readResource(resource, this.#resources, options.signal)
    const entries = checkEntries(read.entries)
    return this.#write(options, writing => replaceResource(writing, read, entries))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#vectors?.close()
    this.#db.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #here(): Writing {
    return { db: this.#db, names: this.#names, now: this.#now() }
  }

  async #write<T>(options: WriteOptions, work: (writing: Writing) => T): Promise<T> {
    this.#check(options)
    const result = await this.#db.write(
      () => {
        const writing = this.#here()
        removeEnded(writing, endedAtOnce)
        const done = work(writing)
        mergeIfDue(this.#db, this.#index)
        return done
      },
      () => {
        this.#index.reset()
        this.#names.clear()
      },
    )
    this.#vectors?.wake()
    return result
  }

  async #read<T>(options: { readonly signal?: AbortSignal }, work: () => T): Promise<T> {
    this.#check(options)
    return this.#db.read(work)
  }

  #check({ signal }: { readonly signal?: AbortSignal }): void {
    checkOpen(this.name, this.#closed, signal)
  }

  /** The living entry that a reference names. */
  #row(ref: MemoryRef): Row | undefined {
    const named = parseRef(ref)
    if (named === undefined) return undefined
    const row = this.#db.get(
      'SELECT * FROM entry WHERE id = ? AND (expires IS NULL OR expires > ?)',
      named.id,
      this.#now(),
    )
    return row && isWithin(this.#names.text(row.scope as number), named.within) ? row : undefined
  }

  /** How many entries everyone sees, by scope and category. */
  *#counts(): Generator<readonly [string, string, number]> {
    const { columns } = this.#index
    const { visible } = accepting({}, { ...this.#here(), index: this.#index })
    const counts = new Map<number, number>()
    for (let n = 1; n < columns.size; n++) {
      if (!visible(n)) continue
      const place = (columns.scope[n] as number) * 2 ** 24 + (columns.category[n] as number)
      counts.set(place, (counts.get(place) ?? 0) + 1)
    }
    for (const [place, count] of counts) {
      yield [this.#names.text(Math.floor(place / 2 ** 24)), this.#names.text(place % 2 ** 24), count]
    }
  }
}
