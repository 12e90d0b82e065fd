import { blockSize } from './columns.ts'
import type { Database } from './database.ts'
import { encodePostings, PostingBuffer, type Postings } from './postings.ts'
import { numberIn, type Segment, setNumber, type WordIndex } from './word-index.ts'

/** How many changes wait before they are merged: few enough that a query reads them in a millisecond. */
const mostChanges = 2_048
/** So many segments of a level become one of the next. The last level is not merged further: 65,536 entries. */
const fanOut = [8, 4] as const
const largestSegment = mostChanges * fanOut[0] * fanOut[1]

/** Brings blocks and segments up to date, in the transaction of the write that made it necessary. */
export function mergeIfDue(db: Database, index: WordIndex, due = mostChanges): void {
  const { seq } = db.get('SELECT max(seq) AS seq FROM change') as { seq: number | null }
  if (seq === null || seq - numberIn(db, 'merged') < due) return
  index.sync(db)
  writeBlocks(db, index, seq)
  const docs = index.tailDocs
  if (docs.length > 0) {
    writeSegment(db, index.tail, {
      first: docs[0] as number,
      last: docs.at(-1) as number,
      level: 0,
      docs: docs.length,
    })
  }
  db.run('DELETE FROM change')
  db.run('DELETE FROM tail')
  setNumber(db, 'merged', seq)
  setNumber(db, 'generation', numberIn(db, 'generation') + 1)
  index.merged(db)
  while (compactOnce(db, index)) index.merged(db)
}

function writeBlocks(db: Database, { columns }: WordIndex, seq: number): void {
  const blocks = db.all(`SELECT DISTINCT n / ${blockSize} AS block FROM change`)
  for (const { block } of blocks) {
    db.run(
      'INSERT OR REPLACE INTO block (n, seq, bytes) VALUES (?, ?, ?)',
      block as number,
      seq,
      columns.encodeBlock(block as number),
    )
  }
}

/** One step towards few segments: full levels go up, and those that are mostly forgotten are written anew. */
function compactOnce(db: Database, index: WordIndex): boolean {
  const { segments } = index
  for (const [level, many] of fanOut.entries()) {
    const ofLevel = segments.filter(segment => segment.level === level)
    if (ofLevel.length >= many) return join(db, index, ofLevel, level + 1)
  }
  const sparse = segments.find(segment => liveIn(index, segment) < segment.docs / 2)
  if (sparse) return join(db, index, [sparse], sparse.level)
  for (const [i, segment] of segments.entries()) {
    const next = segments[i + 1]
    const last = fanOut.length
    if (
      next &&
      segment.level === last &&
      next.level === last &&
      segment.docs + next.docs <= largestSegment / 2
    )
      return join(db, index, [segment, next], last)
  }
  return false
}

/** Writes the living entries of adjacent segments as one. */
function join(db: Database, index: WordIndex, parts: readonly Segment[], level: number): true {
  const { flags } = index.columns
  const words = new Map<string, Postings>()
  const buffer = new PostingBuffer()
  for (const { n, first } of parts) {
    for (const row of db.iterate('SELECT word, count, bytes FROM posting WHERE segment = ?', n)) {
      buffer.length = 0
      buffer.reserve(row.count as number)
      buffer.decode(row.bytes as Uint8Array, first)
      let postings = words.get(row.word as string)
      if (postings === undefined) {
        postings = { docs: [], counts: [] }
        words.set(row.word as string, postings)
      }
      for (let i = 0; i < buffer.length; i++) {
        const doc = buffer.docs[i] as number
        if (flags[doc] === 0) continue
        postings.docs.push(doc)
        postings.counts.push(buffer.counts[i] as number)
      }
    }
    db.run('DELETE FROM posting WHERE segment = ?', n)
    db.run('DELETE FROM segment WHERE n = ?', n)
  }
  const docs = parts.reduce((sum, part) => sum + liveIn(index, part), 0)
  if (docs > 0) {
    const first = (parts[0] as Segment).first
    writeSegment(db, words, { first, last: (parts.at(-1) as Segment).last, level, docs })
  }
  return true
}

function writeSegment(db: Database, words: ReadonlyMap<string, Postings>, segment: Omit<Segment, 'n'>): void {
  const { first, last, level, docs } = segment
  db.run('INSERT INTO segment (first, last, level, docs) VALUES (?, ?, ?, ?)', first, last, level, docs)
  const { n } = db.get('SELECT last_insert_rowid() AS n') as { n: number }
  // In the order of the table, so that its pages are filled one after the other.
  for (const word of [...words.keys()].sort()) {
    const postings = words.get(word) as Postings
    if (postings.docs.length === 0) continue
    const bytes = encodePostings(postings, first)
    db.run('INSERT INTO posting VALUES (?, ?, ?, ?)', n, word, postings.docs.length, bytes)
  }
}

function liveIn({ columns }: WordIndex, { first, last }: Segment): number {
  let live = 0
  for (let n = first; n <= last; n++) if (columns.flags[n] !== 0) live++
  return live
}
