import type { Chunk } from '../../session/chunk.ts'
import type { Place } from './place.ts'

/** A place that is open or being opened, and who needs it. */
export class OpenPlace {
  readonly opening: Promise<Place>
  /** The folder of a branch, whose files are kept: it can be laid out again. */
  readonly isKept: boolean
  /** Runs under way that use it. */
  readonly runs = new Set<string>()
  /** Once it is open. */
  place: Place | undefined
  readonly #placed = new WeakSet<Chunk>()
  #tokens = 0

  constructor(opening: Promise<Place>, isKept: boolean) {
    this.opening = opening
    this.isKept = isKept
    opening.then(
      place => {
        this.place = place
      },
      () => {},
    )
  }

  /** Whether this chunk is new here: sessions that hold it can use the place. */
  isNewToken(placed: Chunk): boolean {
    if (this.#placed.has(placed)) return false
    this.#placed.add(placed)
    this.#tokens++
    return true
  }

  dropToken(): void {
    this.#tokens--
  }

  /** What can be laid out again is needed by runs alone; anything else also by sessions that were placed there. */
  get isUnused(): boolean {
    return this.runs.size === 0 && (this.isKept || this.#tokens === 0)
  }

  async close(): Promise<void> {
    // What could not be opened has nothing to close.
    const place = await this.opening.catch(() => undefined)
    await place?.close()
  }
}
