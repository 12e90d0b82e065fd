import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { chunkAt, lengthOf } from '../session/chain.ts'
import type { Chunk, ChunkBody } from '../session/chunk.ts'
import { identifyText, writeBody } from '../session/identity.ts'
import { withField } from '../session/parse.ts'
import type { SessionValue } from '../session/value.ts'
import { type EncodedChunk, encodeChunk } from './chain-writer.ts'
import type { Rows } from './driver.ts'
import type { PutOptions, SessionRow } from './spec.ts'

/** Puts a value's chunks and row among the rows. Returns the row that is kept already when that one is not shorter. */
export function keep(value: SessionValue, rows: readonly EncodedChunk[], { tag, onlyNew }: PutOptions) {
  const { id, tip, branch, lineage } = value
  const head = tip?.id ?? null
  return (into: Rows): SessionRow | undefined => {
    const kept = into.session(id)
    const longer = kept && kept.length >= lengthOf(tip) && kept.head !== head ? kept : undefined
    if (kept && !longer && !extendsKept(kept, tip)) throw conflict(kept, value)
    if (longer) return longer
    if (kept?.head !== head) {
      const now = Date.now()
      const row = {
        id,
        head,
        length: lengthOf(tip),
        branch,
        lineage,
        created: kept?.created ?? now,
        updated: now,
        tags: kept?.tags ?? [],
      }
      write(row, rows, into)
    }
    if (tag !== undefined && !(onlyNew && kept)) into.setTag(tag, id)
    return undefined
  }
}

function extendsKept(kept: SessionRow, tip: Chunk | undefined): boolean {
  return kept.head === null || (tip !== undefined && chunkAt(tip, kept.length - 1).id === kept.head)
}

/** Links bodies behind a session's newest chunk. Returns nothing when there is no such session. */
export function extend(id: string, bodies: readonly ChunkBody[], after: Digest | undefined, at: number) {
  return (into: Rows): SessionRow | undefined => {
    const kept = into.session(id)
    if (kept === undefined) return undefined
    if (after !== undefined && kept.head !== after) {
      throw new RathError(
        'session-conflict',
        `Session ${id} has moved on: its newest chunk is ${kept.head}, not ${after}. Read it again and append to that.`,
        { data: { session: id, head: kept.head, after } },
      )
    }
    let { head, length } = kept
    const rows = new Array<EncodedChunk>(bodies.length)
    for (let i = 0; i < bodies.length; i++) {
      const body = bodies[i] as ChunkBody
      const placed = kept.branch === '' ? body : withField(body, { branch: kept.branch })
      const text = writeBody(placed)
      const next = identifyText(text, head)
      rows[i] = encodeChunk(placed, { id: next, index: length++, previous: head, session: id }, text)
      head = next
    }
    const row = { ...kept, head, length, updated: at }
    write(row, rows, into)
    return row
  }
}

function write(row: SessionRow, chunks: readonly EncodedChunk[], into: Rows): void {
  into.setSession(
    row,
    chunks.map(chunk => chunk.row),
  )
  for (const { blobs } of chunks) for (const blob of blobs) into.addBlob(blob)
}

export function conflict(kept: SessionRow, value: SessionValue): RathError {
  return new RathError(
    'session-conflict',
    `Session ${value.id} is kept with other chunks (head ${kept.head}, ${kept.length} chunks). ` +
      'A kept session can only be extended; fork() it to go another way.',
    { data: { session: value.id, head: kept.head } },
  )
}
