import type { Digest } from '../../base/digest.ts'
import type { Session } from '../../session/session.ts'
import type { JournalEntry, RunRow } from '../../store/spec.ts'

/** What a dossier is made of. Nothing more is read once this is at hand. */
export interface Material {
  /** The session that everything led to; one of `sessions`. */
  readonly final: Session
  /** Parents before children, as far as they are here. */
  readonly sessions: readonly Session[]
  readonly run?: RunRow
  readonly journal?: readonly JournalEntry[]
  /** Instructions by the digest that answers name them with. */
  readonly prompts?: ReadonlyMap<Digest, string>
  /** Sessions that others came from and that were not found. */
  readonly missing?: readonly string[]
  /** Takes out the secrets that the store keeps out of itself: files are kept as they are. */
  readonly clean?: (text: string) => string
  /** There were more sessions than were looked at. */
  readonly more?: boolean
}
