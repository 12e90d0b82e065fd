import { type Digest, digestOf } from '../../base/digest.ts'
import type { Chunk, ChunkBody } from '../chunk.ts'
import type { Lineage } from '../lineage.ts'

/** The session format, up to version 2; docs/format/session.md is its specification. */
export const formatName = 'openrath/session'
export const formatVersion = 2

/** Opens a section of the file: the chunks that follow belong to this session. */
export interface SessionRecord {
  readonly type: 'session'
  readonly format: typeof formatName
  readonly version: number
  readonly id: string
  readonly branch: string
  readonly lineage: Lineage
  /** The chunk, earlier in this file, that the section continues from; absent when it starts from nothing. */
  readonly after?: Digest
  readonly digest: Digest
}

export interface ChunkRecord {
  readonly type: 'chunk'
  readonly id: Digest
  readonly chunk: ChunkBody
}

/** Closes a section. A section without it is still being written, or was cut off. */
export interface EndRecord {
  readonly type: 'end'
  readonly session: string
  readonly head: Digest | null
  readonly length: number
  readonly digest: Digest
}

export type FormatRecord = SessionRecord | ChunkRecord | EndRecord

type Named = Pick<SessionRecord, 'id' | 'branch' | 'lineage'>

/** `chunks` are those of the section: it is written in the oldest version that has all their members, for readers that know no newer one. */
export function sessionRecord(
  { id, branch, lineage }: Named,
  after: Digest | undefined,
  chunks: readonly Chunk[],
): SessionRecord {
  const opening = {
    type: 'session',
    format: formatName,
    version: chunks.some(isNew) ? 2 : 1,
    id,
    branch,
    lineage,
  } as const
  return seal(after === undefined ? opening : { ...opening, after })
}

/** Whether version 1 has no place for it. */
function isNew(chunk: Chunk): boolean {
  switch (chunk.kind) {
    case 'effect':
      return true
    case 'tool-result':
      return chunk.sessions !== undefined || chunk.usage !== undefined
    case 'merge':
      return chunk.leftOut?.some(({ inside }) => inside) ?? false
    default:
      return false
  }
}

export function chunkRecord(chunk: Chunk): ChunkRecord {
  return { type: 'chunk', id: chunk.id, chunk: { ...chunk } as ChunkBody }
}

export function endRecord(session: string, head: Digest | null, length: number): EndRecord {
  return seal({ type: 'end', session, head, length } as const)
}

/** Adds a record's own digest; chunks have their ids for that. */
export function seal<T extends object>(record: T): T & { readonly digest: Digest } {
  return { ...record, digest: digestOf(record) }
}

/** Whether a sealed record is as it was written. */
export function isIntact(record: { readonly digest?: unknown }): boolean {
  const { digest, ...sealed } = record
  return digestOf(sealed) === digest
}

/** One line. The line separators that JSON leaves bare are escaped, for readers that split on them. */
export function toLine(record: FormatRecord): string {
  const line = JSON.stringify(record).replace(
    /[\u0085\u2028\u2029]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `${line}\n`
}
