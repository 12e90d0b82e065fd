import type { Digest } from '../../../base/digest.ts'
import type {
  BlobRow,
  ChangeLog,
  ChunkRow,
  IndexWords,
  SessionPosition,
  StoreDriver,
  Touched,
} from '../../driver.ts'
import type { RunRow, RunStatus, SessionFilter, SessionRow } from '../../spec.ts'
import { Tables } from './tables.ts'

/** `memory:` — for tests and throw-away runs. Gone with the process; otherwise it behaves like the others. */
export function memoryDriver(): StoreDriver {
  const tables = new Tables()
  const { sessions, changed, chunks, blobs, tags, runs, journals } = tables
  const words = new Map<Digest, Set<string>>()
  const watchers = new Set<() => void>()

  return {
    url: 'memory:',
    neverWaits: true,

    commit(_: Touched, decide) {
      decide(tables)
      for (const wake of watchers) wake()
      return undefined
    },

    async sessionRow(id) {
      return tables.session(id)
    },
    async sessionIds(prefix, limit) {
      return tables.ids.startingWith(prefix, limit)
    },
    async tagged(tag) {
      return tags.get(tag)
    },
    async sessionRows(filter, limit, before) {
      const { parent } = filter
      return [...(parent === undefined ? sessions.values() : tables.childrenOf(parent))]
        .map(row => tables.withTags(row))
        .filter(row => matches(row, filter) && (before === undefined || comesBefore(before, row)))
        .sort((a, b) => (comesBefore(a, b) ? -1 : 1))
        .slice(0, limit)
    },
    sessionChanges: changeLog(tables, changed, id => tables.withTags(sessions.get(id) as SessionRow)),
    runChanges: changeLog(tables, tables.changedRuns, id => runs.get(id) as RunRow),
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
    async keepBlobs(ids) {
      const found = ids.filter(id => blobs.has(id))
      for (const id of found) tables.addBlob(blobs.get(id) as BlobRow)
      return found.length
    },
    async blobs(ids) {
      return new Map(ids.flatMap(id => (blobs.has(id) ? [[id, (blobs.get(id) as BlobRow).bytes]] : [])))
    },

    async runRow(id) {
      return runs.get(id)
    },
    async runRows(status: RunStatus | undefined, limit, before) {
      const all = [...runs.values()]
      const end = before === undefined ? all.length : all.findIndex(run => run.id === before)
      return all
        .slice(0, end)
        .filter(run => status === undefined || run.status === status)
        .reverse()
        .slice(0, limit)
    },
    async takeRun(owner, leaseMs, queues) {
      const { now } = tables
      const waiting = [...runs.values()].filter(
        ({ queue, status, leaseUntil }) =>
          queue !== undefined &&
          queues.includes(queue.name) &&
          (queue.notBefore ?? 0) <= now &&
          (status === 'queued' || (status === 'running' && leaseUntil <= now)),
      )
      const [next] = waiting.sort((a, b) => (b.queue?.priority ?? 0) - (a.queue?.priority ?? 0))
      if (next === undefined) return undefined
      const fence = next.fence + 1
      const taken: RunRow = {
        ...next,
        status: 'running',
        owner,
        fence,
        leaseUntil: now + leaseMs,
        updated: now,
      }
      tables.setRun(taken)
      for (const wake of watchers) wake()
      return taken
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
      return best.map(row => ({
        ...row,
        session: sessions.has(row.session) ? row.session : heirOf(tables, row),
      }))
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
          tables.deleteChunk(id)
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

function changeLog<Row>(
  tables: Tables,
  changed: ReadonlyMap<string, number>,
  read: (id: string) => Row,
): ChangeLog<Row> {
  return {
    async behind(cursor) {
      const newest = String(tables.sequence)
      if (cursor === undefined) return { rows: [], cursor: newest }
      const later = [...changed].filter(([, at]) => at > Number(cursor)).sort(([, a], [, b]) => a - b)
      return { rows: later.map(([id]) => read(id)), cursor: newest }
    },
    isCursor: text => /^\d{1,15}$/.test(text),
  }
}

/** For a chunk whose session was deleted, the oldest session that reaches it, or an empty text. */
function heirOf({ sessions, chunks }: Tables, { id, index }: ChunkRow): string {
  for (const { id: heir, head } of sessions.values()) {
    let at = head === null ? undefined : chunks.get(head)
    while (at && at.index > index) at = at.previous === null ? undefined : chunks.get(at.previous)
    if (at?.id === id) return heir
  }
  return ''
}

function matches(row: SessionRow, filter: SessionFilter): boolean {
  const { lineage } = row
  return (
    (filter.operation === undefined || lineage.operation === filter.operation) &&
    (filter.by === undefined || lineage.by === filter.by) &&
    (filter.label === undefined || lineage.label === filter.label) &&
    (filter.tagged === undefined || row.tags.length > 0 === filter.tagged) &&
    (filter.since === undefined || row.created >= filter.since) &&
    (filter.until === undefined || row.created < filter.until)
  )
}

/** Newest first, then by id from the end of the alphabet. */
function comesBefore(a: SessionPosition, b: SessionPosition): boolean {
  return a.created > b.created || (a.created === b.created && a.id > b.id)
}
