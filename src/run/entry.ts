import { type Digest, sha256 } from '../base/digest.ts'
import { canonicalJson, type Json, type JsonObject } from '../base/json.ts'
import type { Session } from '../session/session.ts'
import { valueFrom } from '../session/session.ts'
import type { JournalEntry } from '../store/spec.ts'
import type { Effect } from '../tool/spec.ts'

/** Something that is asked of the world. */
export interface Asked {
  /** `model`, `tool`, `approval`, `policy`, `merge`, `memory`, or a name of the user's own. */
  readonly kind: string
  /** What it is asked from: its state is part of the key. */
  readonly session: Session
  /** Everything else that the outcome depends on. */
  readonly request: Json
  /** Its canonical JSON, where that is known: an agent asks the same thing round after round. */
  readonly text?: string | undefined
  /** Tells equal things asked side by side apart; see `Scope`. */
  readonly sample: string
  /** What becomes of it when the process dies before the outcome is known. */
  readonly rule: Effect
  readonly by: string
  /** What people call it: a call's id, an approval's. */
  readonly id?: string | undefined
  /** Facts for readers that are no part of the key. */
  readonly facts?: JsonObject | undefined
  /** The outcome is durable before whoever asked goes on: it may have changed the world. */
  readonly urgent?: boolean | undefined
  /** Others may give the outcome too, from any process: the first stands. */
  readonly anybody?: boolean | undefined
  /** It changes nothing and costs nothing: intent and outcome are written together, behind what was done before. */
  readonly light?: boolean | undefined
  /** Of this run alone: never borrowed. */
  readonly own?: boolean | undefined
  /** Whether an outcome may be borrowed from a run with these entries; any that went well by default. */
  mayBorrow?(outcome: Outcome, entries: readonly JournalEntry[]): boolean
  /** Whether nobody waits for it any more. */
  isCancelled?(): boolean
}

/** How an effect ended, as the journal keeps it. */
export type Outcome = (
  | { readonly value: Json; readonly error?: undefined }
  | { readonly error: Json; readonly value?: undefined }
) & {
  /** How long it took; that of the run it was borrowed from, if it was. */
  readonly ms?: number
}

/** What an entry's `request` holds. */
export interface AskedRecord {
  readonly request: Json
  readonly state: Digest
  readonly by: string
  readonly rule: Effect
  /** The chunk after which it was asked; null at the start of a session. */
  readonly after: { readonly index: number; readonly kind: string } | null
  readonly sample?: string
  readonly id?: string
  readonly facts?: JsonObject
  /** The run that the outcome was borrowed from. */
  readonly reused?: string
}

/** What makes two effects the same: the state, the kind, the request, and which of several samples it is. */
export function keyOf({ kind, session, request, text = canonicalJson(request), sample }: Asked): string {
  const last = sample === '' ? '""' : JSON.stringify(sample)
  return sha256(`["${session.state}",${JSON.stringify(kind)},${text},${last}]`)
}

/** The key under which a failure that was tried again has its next outcome. */
export function nextKey(key: string): string {
  const [base, attempt] = key.split('+')
  return `${base}+${Number(attempt ?? 0) + 1}`
}

export function recordOf(asked: Asked, reused?: string): AskedRecord {
  const { session, request, by, rule, sample, id, facts } = asked
  const tip = valueFrom(session).tip
  const after = tip ? { index: tip.index, kind: tip.kind } : null
  const record: Writable<AskedRecord> = { request, state: session.state, by, rule, after }
  if (sample !== '') record.sample = sample
  if (id !== undefined) record.id = id
  if (facts) record.facts = facts
  if (reused !== undefined) record.reused = reused
  return record
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

export function askedIn(entry: JournalEntry): AskedRecord {
  return entry.request as unknown as AskedRecord
}

export function outcomeIn(entry: JournalEntry | undefined): Outcome | undefined {
  return entry?.outcome as Outcome | undefined
}

/** Entries that are no effects: what requests name by digest. */
export const definition = 'definition'
