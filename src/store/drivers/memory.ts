import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import {
  type BlobRow,
  type ChunkRow,
  type EntryName,
  type EntryRow,
  type IndexWords,
  type Place,
  type StoreDriver,
  type Touched,
  Unit,
} from '../driver.ts'
import type { RunRow, RunStatus, SessionFilter, SessionRow } from '../spec.ts'

/** `memory:` — for tests and throw-away runs. Gone with the process; otherwise it behaves like the others. */
export function memoryDriver(): StoreDriver {
  const sessions = new Map<string, SessionRow>()
  /** Ids in the order of their last change; re-inserting moves one to the end. */
  const changed = new Map<string, number>()
  const chunks = new Map<Digest, ChunkRow & { readonly written: number }>()
  const blobs = new Map<Digest, BlobRow & { readonly written: number }>()
  const tags = new Map<string, string>()
  const runs = new Map<string, RunRow>()
  const journals = new Map<string, MemoryJournal>()
  const words = new Map<Digest, Set<string>>()
  const watchers = new Set<() => void>()
  let sequence = 0

  const withTags = (row: SessionRow): SessionRow => {
    if (tags.size === 0) return row.tags.length === 0 ? row : { ...row, tags: [] }
    const own = [...tags].filter(([, id]) => id === row.id)
    return { ...row, tags: own.map(([tag]) => tag).sort() }
  }

  const rowOf = (id: string): SessionRow | undefined => {
    const row = sessions.get(id)
    return row && withTags(row)
  }

  function apply(unit: Unit): void {
    const now = Date.now()
    const { sessions: rows, runs: runRows, entries: entryRows } = unit.written
    const need = (id: Digest | null) => {
      if (id === null || unit.chunks.has(id) || chunks.has(id)) return
      throw new RathError('chunk-missing', `Chunk ${id} is not stored, although something refers to it.`)
    }
    for (const chunk of unit.chunks.values()) need(chunk.previous)
    for (const row of rows) need(row.head)
    for (const chunk of unit.chunks.values())
      if (!chunks.has(chunk.id)) chunks.set(chunk.id, { ...chunk, written: now })
    for (const blob of unit.blobs.values()) blobs.set(blob.id, { ...blob, written: now })
    for (const row of rows) {
      sessions.set(row.id, row)
      changed.delete(row.id)
      changed.set(row.id, ++sequence)
    }
    for (const id of unit.deletedSessions) {
      sessions.delete(id)
      changed.delete(id)
      for (const [tag, session] of tags) if (session === id) tags.delete(tag)
    }
    for (const [tag, id] of unit.tags) id === null ? tags.delete(tag) : tags.set(tag, id)
    for (const row of runRows) runs.set(row.id, row)
    for (const row of entryRows) {
      const journal = journals.get(row.run) ?? new MemoryJournal()
      journals.set(row.run, journal)
      journal.set(row)
    }
  }

  return {
    url: 'memory:',
    neverWaits: true,

    commit(touched: Touched, decide) {
      const unit = new Unit({
        sessions: found(touched.sessions, rowOf),
        runs: found(touched.runs, id => runs.get(id)),
        entries: found(touched.entries, name => journals.get(name.run)?.get(name)),
      })
      decide(unit)
      apply(unit)
      for (const wake of watchers) wake()
      return undefined
    },

    async sessionRow(id) {
      return rowOf(id)
    },
    async sessionIds(prefix, limit) {
      return [...sessions.keys()]
        .filter(id => id.startsWith(prefix))
        .sort()
        .slice(0, limit)
    },
    async tagged(tag) {
      return tags.get(tag)
    },
    async sessionRows(filter, limit, before) {
      return [...sessions.values()]
        .map(withTags)
        .filter(row => matches(row, filter) && (before === undefined || comesBefore(before, row)))
        .sort((a, b) => (comesBefore(a, b) ? -1 : 1))
        .slice(0, limit)
    },
    async changes(cursor) {
      if (cursor === undefined) return { rows: [], cursor: String(sequence) }
      const later = [...changed].filter(([, at]) => at > Number(cursor))
      return { rows: later.map(([id]) => withTags(sessions.get(id) as SessionRow)), cursor: String(sequence) }
    },
    isCursor: text => /^\d{1,15}$/.test(text),
    watch(wake) {
      watchers.add(wake)
      return { [Symbol.dispose]: () => void watchers.delete(wake) }
    },

    async chunkRows(head, from, limit) {
      const rows: ChunkRow[] = []
      for (let id: Digest | null = head; id !== null && rows.length < limit; ) {
        const row: ChunkRow | undefined = chunks.get(id)
        if (row === undefined || row.index < from) break
        rows.push(row)
        id = row.previous
      }
      return rows
    },
    async knownChunks(ids) {
      return new Set(ids.filter(id => chunks.has(id)))
    },
    async blobs(ids) {
      return new Map(ids.flatMap(id => (blobs.has(id) ? [[id, (blobs.get(id) as BlobRow).bytes]] : [])))
    },

    async runRow(id) {
      return runs.get(id)
    },
    async runRows(status: RunStatus | undefined, limit) {
      return [...runs.values()]
        .filter(run => status === undefined || run.status === status)
        .reverse()
        .slice(0, limit)
    },
    async entryRow(run, key, occurrence) {
      return journals.get(run)?.get({ key, occurrence })
    },
    async entryRows(run) {
      return [...(journals.get(run)?.rows ?? [])]
    },

    async unindexed(limit) {
      const rows: ChunkRow[] = []
      for (const chunk of chunks.values()) {
        if (rows.length === limit) break
        if (!words.has(chunk.id)) rows.push(chunk)
      }
      return rows
    },
    async index(rows: readonly IndexWords[]) {
      for (const row of rows) words.set(row.id, new Set(row.words.split(' ')))
    },
    async search(wanted, kind, limit) {
      const found: ChunkRow[] = []
      for (const chunk of chunks.values()) {
        const has = words.get(chunk.id)
        if (has && wanted.every(word => has.has(word)) && (kind === undefined || chunk.kind === kind))
          found.push(chunk)
      }
      // A shorter text with all the words is more about them.
      const size = (chunk: ChunkRow) => words.get(chunk.id)?.size ?? 0
      const best = found.sort((a, b) => size(a) - size(b)).slice(0, limit)
      return best.map(row => ({ ...row, session: sessions.has(row.session) ? row.session : '' }))
    },

    async sweep(before, dryRun) {
      const reached = new Set<Digest>()
      for (const { head } of sessions.values()) {
        for (let id = head; id !== null && !reached.has(id); id = (chunks.get(id) as ChunkRow).previous)
          reached.add(id)
      }
      for (const chunk of chunks.values()) {
        if (chunk.written < before) continue
        for (
          let id: Digest | null = chunk.id;
          id !== null && !reached.has(id);
          id = (chunks.get(id) as ChunkRow).previous
        )
          reached.add(id)
      }
      const lost = [...chunks.values()].filter(chunk => !reached.has(chunk.id))
      const needed = new Set<Digest>()
      for (const { rows } of journals.values())
        for (const row of rows) for (const id of row.blobs) needed.add(id)
      for (const chunk of chunks.values())
        if (reached.has(chunk.id)) for (const id of chunk.blobs) needed.add(id)
      const loose = [...blobs.values()].filter(blob => !needed.has(blob.id) && blob.written < before)
      if (!dryRun) {
        for (const { id } of lost) {
          chunks.delete(id)
          words.delete(id)
        }
        for (const { id } of loose) blobs.delete(id)
      }
      const bytes =
        lost.reduce((sum, row) => sum + Buffer.byteLength(row.body), 0) +
        loose.reduce((sum, row) => sum + row.bytes.length, 0)
      return { chunks: lost.length, blobs: loose.length, bytes }
    },
    async close() {
      watchers.clear()
    },
  }
}

/** The entries of one run, in the order in which they were first written. */
class MemoryJournal {
  readonly rows: EntryRow[] = []
  /** By key, the places of its occurrences. */
  readonly #places = new Map<string, number[]>()

  get({ key, occurrence }: Omit<EntryName, 'run'>): EntryRow | undefined {
    for (const place of this.#places.get(key) ?? none) {
      const row = this.rows[place] as EntryRow
      if (row.occurrence === occurrence) return row
    }
    return undefined
  }

  set(row: EntryRow): void {
    const places = this.#places.get(row.key)
    const known = places?.find(place => this.rows[place]?.occurrence === row.occurrence)
    if (known !== undefined) this.rows[known] = row
    else {
      const place = this.rows.push(row) - 1
      if (places) places.push(place)
      else this.#places.set(row.key, [place])
    }
  }
}

const none: readonly number[] = []

function found<K, V>(keys: Iterable<K>, look: (key: K) => V | undefined): V[] {
  const rows: V[] = []
  for (const key of keys) {
    const row = look(key)
    if (row !== undefined) rows.push(row)
  }
  return rows
}

function matches(row: SessionRow, filter: SessionFilter): boolean {
  const { lineage } = row
  return (
    (filter.operation === undefined || lineage.operation === filter.operation) &&
    (filter.by === undefined || lineage.by === filter.by) &&
    (filter.label === undefined || lineage.label === filter.label) &&
    (filter.parent === undefined || lineage.parents.includes(filter.parent)) &&
    (filter.tagged === undefined || row.tags.length > 0 === filter.tagged) &&
    (filter.since === undefined || row.created >= filter.since) &&
    (filter.until === undefined || row.created < filter.until)
  )
}

/** Newest first, then by id from the end of the alphabet. */
function comesBefore(a: Place, b: Place): boolean {
  return a.created > b.created || (a.created === b.created && a.id > b.id)
}
