import { type ChunkRow, type Rows, Unit } from '../../driver.ts'
import type { SessionRow } from '../../spec.ts'
import type { NumberedSession } from './session-cache.ts'

/**
 * Rows for a decision on one session, without the room that a unit has for everything: most decisions only put chunks behind its newest.
 * One that does more is to be made again on a unit.
 */
export class Extension implements Rows {
  readonly known: NumberedSession
  chunks: ChunkRow[] | undefined
  row: SessionRow
  isMore = false
  readonly now = Date.now()

  constructor(known: NumberedSession) {
    this.known = known
    this.row = known.row
  }

  session(id: string): SessionRow | undefined {
    if (id === this.row.id) return this.row
    this.isMore = true
    return undefined
  }

  setSession(row: SessionRow): void {
    if (row.id === this.row.id) this.row = row
    else this.isMore = true
  }

  addChunk(row: ChunkRow): void {
    if (this.chunks === undefined) this.chunks = [row]
    else this.chunks.push(row)
  }

  /** The same for who writes units. */
  get unit(): Unit {
    const unit = new Unit({ sessions: [this.known.row], runs: [], entries: [] })
    for (const chunk of this.chunks ?? []) unit.addChunk(chunk)
    if (this.row !== this.known.row) unit.setSession(this.row)
    return unit
  }

  deleteSession(): void {
    this.isMore = true
  }

  addBlob(): void {
    this.isMore = true
  }

  setTag(): void {
    this.isMore = true
  }

  run(): undefined {
    this.isMore = true
  }

  setRun(): void {
    this.isMore = true
  }

  entry(): undefined {
    this.isMore = true
  }

  setEntry(): void {
    this.isMore = true
  }
}
