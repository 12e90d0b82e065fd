import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import { type Problem, refuse } from '../../base/json.ts'
import { lengthOf, link, newLink } from '../chain.ts'
import {
  count,
  digest,
  fields,
  jsonObject,
  list,
  nonEmpty,
  nullable,
  number,
  record,
  text,
  time,
} from '../check.ts'
import type { Chunk } from '../chunk.ts'
import { parseRecordedChunk } from '../parse.ts'
import type { SessionValue } from '../value.ts'
import type { VerificationProblem } from '../verify.ts'
import { type EndRecord, formatName, formatVersion, isIntact, type SessionRecord } from './format.ts'

/** Builds one session from its records. `add` returns true when the record closes it. */
export interface Section {
  add(record: Record<string, unknown>, line: number): boolean
  result(): { value: SessionValue; damage: VerificationProblem | undefined }
}

/** The chunks read so far from one file, by id: later sections may continue from them. */
export type SharedChunks = Map<Digest, Chunk>

export class SessionSection implements Section {
  readonly #opening: SessionRecord
  readonly #shared: SharedChunks
  #tip: Chunk | undefined
  #damage: VerificationProblem | undefined
  #ended = false

  constructor(opening: Record<string, unknown>, line: number, shared: SharedChunks) {
    checkVersion(opening, line)
    this.#opening = parse<SessionRecord>(opening, sessionRecord, line)
    this.#shared = shared
    const { after } = this.#opening
    if (after !== undefined) {
      this.#tip = shared.get(after)
      if (!this.#tip) {
        throw malformed(line, `continues from chunk ${after}, which does not come before it in this file`)
      }
    }
    if (!isIntact(opening)) this.#found(`line ${line}: the session record was altered`)
  }

  add(record: Record<string, unknown>, line: number): boolean {
    if (record.type === 'chunk') {
      const { id } = parse<{ id: Digest }>(record, chunkRecord, line)
      this.#tip = link(this.#tip, parseRecordedChunk(record.chunk, `line ${line}`, newLink), id)
      this.#shared.set(id, this.#tip)
      return false
    }
    if (record.type !== 'end')
      throw malformed(line, `has the type ${show(record.type)}; known are session, chunk, end`)
    const end = parse<EndRecord>(record, endRecord, line)
    if (!isIntact(record)) this.#found(`line ${line}: the end record was altered`)
    if (end.session !== this.#opening.id) this.#found(`line ${line}: the end record names another session`)
    // Claimed ids, not recomputed ones: verify() recomputes them and names the chunk.
    if (end.length !== lengthOf(this.#tip) || end.head !== (this.#tip?.id ?? null)) {
      this.#found(
        `line ${line}: the session ended with ${end.length} chunks, and ${lengthOf(this.#tip)} are here`,
      )
    }
    this.#ended = true
    return true
  }

  result(): { value: SessionValue; damage: VerificationProblem | undefined } {
    const { id, branch, lineage } = this.#opening
    if (!this.#ended)
      this.#found('the end record is missing: the file is still being written, or was cut off')
    return { value: { id, tip: this.#tip, branch, lineage, since: id }, damage: this.#damage }
  }

  #found(reason: string): void {
    this.#damage ??= { reason }
  }
}

function checkVersion(opening: Record<string, unknown>, line: number): void {
  if (opening.format !== formatName)
    throw malformed(line, `has the format ${show(opening.format)}; this reads ${formatName}`)
  const { version } = opening
  if (!Number.isSafeInteger(version) || (version as number) < 1)
    throw malformed(line, `has the version ${show(version)}; a whole number from 1 is needed`)
  if ((version as number) > formatVersion) {
    throw new RathError(
      'format-newer',
      `This file is in session format ${version}, and this openrath reads up to ${formatVersion}: update openrath to read it.`,
      { data: { version: version as number, reads: formatVersion } },
    )
  }
}

const lineageRecord = record(
  fields(
    {
      parents: list(nonEmpty),
      operation: nonEmpty,
      by: nonEmpty,
      at: time,
      label: nonEmpty,
      lane: nonEmpty,
      extras: jsonObject,
    },
    ['parents', 'operation', 'at', 'extras'],
  ),
)
const sessionRecord = fields(
  {
    type: text,
    format: text,
    version: number,
    id: nonEmpty,
    branch: text,
    lineage: lineageRecord,
    after: digest,
    digest,
  },
  ['id', 'branch', 'lineage', 'digest'],
)
const chunkRecord = fields({ type: text, id: digest, chunk: (value: unknown) => value }, ['id', 'chunk'])
const endRecord = fields({ type: text, session: nonEmpty, head: nullable(digest), length: count, digest }, [
  'session',
  'head',
  'length',
  'digest',
])

function parse<T>(value: unknown, checked: Parameters<typeof record>[0], line: number): T {
  const problems: Problem[] = []
  const parsed = record<T>(checked)(value, `line ${line}`, problems)
  refuse('format-malformed', `Line ${line} is not a record of this format`, problems)
  return parsed
}

export function malformed(line: number, what: string): RathError {
  return new RathError('format-malformed', `Line ${line} ${what}.`, { data: { line } })
}
