import { type Digest, digestOf, sha256 } from '../base/digest.ts'
import { type ErrorCode, RathError } from '../base/errors.ts'
import { canonicalJson, isPlainObject, type Json, type JsonObject } from '../base/json.ts'
import type { ModelAnswer } from '../model/spec.ts'
import type { SearchQuery } from '../sandbox/spec.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { JoinedFiles } from '../session/files.ts'
import { firstState } from '../session/first-state.ts'
import { type Session, valueFrom } from '../session/session.ts'
import { addUsage, completeUsage, noUsage, type Usage } from '../session/usage.ts'
import type { JournalEntry, Store } from '../store/spec.ts'
import type { ApprovalDecision } from '../tool/approval.ts'
import type { Effect } from '../tool/spec.ts'
import type { ToolInside, ToolRecord } from '../tool/tool-record.ts'
import type { Ruling } from '../tool/turn.ts'

/** How keys are made: 2 by this version, 1 by those before it. A run keeps the rule that it was begun with. */
export type KeyRule = 1 | 2

/**
 * What each kind of effect is asked with, what it gives, and how it fails. Any other kind is a user's own, named by them, with JSON for
 * both. The journal keeps all of it as JSON: `askedIn` and `outcomeIn` give an entry the types of its kind.
 */
export interface Kinds {
  readonly model: {
    readonly request: ModelAsked
    readonly value: ModelAnswered
    readonly error: ModelFailure
  }
  readonly tool: { readonly request: ToolAsked; readonly value: ToolRecord; readonly error: Failure }
  /** What policies and the tool itself say about a call. */
  readonly policy: { readonly request: ToolAsked; readonly value: Ruling; readonly error: Failure }
  readonly approval: {
    readonly request: Pick<ToolAsked, 'tool' | 'args' | 'place'>
    readonly value: ApprovalDecision
    readonly error: Failure
  }
  readonly memory: { readonly request: JsonObject; readonly value: Json; readonly error: Failure }
  /** Files of branches, joined. */
  readonly merge: { readonly request: JsonObject; readonly value: JoinedFiles; readonly error: Failure }
  /** The budget ended a piece of work: what of it is spent. */
  readonly budget: {
    readonly request: JsonObject
    readonly value: string
    readonly error: { readonly spent: string }
  }
  /** Of branches by label, the number of the one that was enough. */
  readonly first: { readonly request: readonly string[]; readonly value: number; readonly error: Failure }
}

export type Kind = keyof Kinds
export type RequestOf<K extends string> = K extends Kind ? Kinds[K]['request'] : Json
export type ValueOf<K extends string> = K extends Kind ? Kinds[K]['value'] : Json
export type ErrorOf<K extends string> = K extends Kind ? Kinds[K]['error'] : Json
export type FactsOf<K extends string> = K extends 'approval' ? ApprovalFacts : JsonObject

/** Everything but the conversation, which the state of the session covers. */
export type ModelAsked = JsonObject & { readonly model: string }

export interface ModelAnswered {
  readonly answer: ModelAnswer
  /** Attempts that failed before it, as evidence. */
  readonly failures: readonly ChunkInput[]
}

/** Why no answer came; `spent` where the budget ended it, and how often the model had been asked then. */
export interface ModelFailure extends Partial<Failure> {
  readonly failures: readonly ChunkInput[]
  readonly spent?: string
  readonly rounds?: number
}

/** A call; the ids that providers invent are no part of it. */
export interface ToolAsked {
  readonly args: Json
  readonly effect: Effect
  /** Its number among the calls of the turn. */
  readonly place: number
  /** Digest of its parameters. */
  readonly schema: Digest
  readonly tool: string
}

/** What an approval's entry says besides its request. */
export interface ApprovalFacts {
  readonly question: string
  /** Of the tool's name and all of its arguments. */
  readonly digest: string
  readonly until?: number
  /** The tool is one that comes with the package, not one with its name. */
  readonly builtin?: boolean
  /** Digest of the JSON Schema of the tool's arguments, which the journal defines. */
  readonly schema?: string
}

/** An error as the journal keeps it; see `failureOf`. */
export interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly data?: JsonObject
}

/** Something that is asked of the world. */
export interface Asked<K extends string = string> {
  readonly kind: K
  /** What it is asked from: its state is part of the key. */
  readonly session: Session
  /** Everything else that the outcome depends on. */
  readonly request: RequestOf<K>
  /** Its canonical JSON, where that is known: an agent asks the same thing round after round. */
  readonly text?: string | undefined
  /** The same by the first rule, where that had another. */
  readonly firstRequest?: RequestOf<K> | undefined
  /** Tells equal things asked side by side apart; see `Scope`. */
  readonly sample: string
  /** What becomes of it when the process dies before the outcome is known. */
  readonly rule: Effect
  readonly by: string
  /** What people call it: a call's id, an approval's, which may depend on which entry it becomes. */
  readonly id?: string | ((at: EntryName) => string) | undefined
  /** Facts for readers that are no part of the key. */
  readonly facts?: FactsOf<K> | undefined
  /** The outcome is durable before whoever asked goes on: it may have changed the world. */
  readonly urgent?: boolean | undefined
  /** Others may give the outcome too, from any process: the first stands. */
  readonly anybody?: boolean | undefined
  /** It changes nothing and costs nothing: intent and outcome are written together, behind what was done before. */
  readonly light?: boolean | undefined
  /** Of this run alone: never borrowed. */
  readonly own?: boolean | undefined
  /**
   * What may be taken of an outcome of another run: all of it by default. Undefined when it does not hold here: something that it depends on
   * is not as it was.
   */
  borrow?(outcome: Outcome<K>, lender: Lending): Promise<Outcome<K> | undefined>
  /** Aborted when nobody waits for it any more. */
  readonly signal: { readonly aborted: boolean }
}

/** How an effect ended, as the journal keeps it. */
export type Outcome<K extends string = string> = (
  | { readonly value: ValueOf<K>; readonly error?: undefined }
  | { readonly error: ErrorOf<K>; readonly value?: undefined }
) & {
  /** How long it took; that of the run it was borrowed from, if it was. */
  readonly ms?: number
  /** What it depended on besides what it was asked from and for. */
  readonly sees?: readonly Seen[]
  /** When it ended, in milliseconds since the epoch. Entries written before 0.2 have it in `concludedAt` alone. */
  readonly at?: number
  /** What was done inside it that is on no entry of its own session. */
  readonly inside?: ToolInside
}

/** Something of a workspace that an effect looked at, and how it was; `null`: nothing can tell whether it still is. */
export type Seen =
  | {
      readonly op: 'read'
      readonly path: string
      readonly start?: number
      readonly end?: number
      readonly is: string
    }
  | { readonly op: 'stat' | 'list'; readonly path: string; readonly is: string }
  | { readonly op: 'search'; readonly query: Omit<SearchQuery, 'signal'>; readonly is: string }
  | { readonly op: 'tree'; readonly is: Digest | null }

/** A run that outcomes are borrowed from. */
export interface Lending {
  readonly rule: KeyRule
  readonly entries: readonly JournalEntry[]
}

export type EntryName = Pick<JournalEntry, 'key' | 'occurrence'>

/** What an entry's `request` holds. */
export interface AskedRecord<K extends string = string> {
  readonly request: RequestOf<K>
  readonly state: Digest
  readonly by: string
  readonly rule: Effect
  /** The chunk after which it was asked; null at the start of a session. */
  readonly after: { readonly index: number; readonly kind: string } | null
  readonly sample?: string
  /** The branch that it was asked on, where that has forks without a label. */
  readonly branch?: string
  readonly id?: string
  readonly facts?: FactsOf<K>
  /** The run that the outcome was borrowed from. */
  readonly reused?: string
  /** The entry of this run whose outcome a person said it is. */
  readonly instead?: string
}

/** What makes two effects the same: the state, the kind and the request. By the first rule, also which of several samples it is. */
export function keyOf(asked: Asked, rule: KeyRule): string {
  const { kind, session, request, text = canonicalJson(request), sample } = asked
  if (rule === 2) return sha256(`["${session.state}",${JSON.stringify(kind)},${text}]`)
  const last = sample === '' ? '""' : JSON.stringify(sample)
  return sha256(`["${stateIn(session, rule)}",${JSON.stringify(kind)},${text},${last}]`)
}

/** The state that keys of a rule are made of. */
export function stateIn(session: Session, rule: KeyRule): Digest {
  return rule === 2 ? session.state : firstState(valueFrom(session))
}

/** What is asked, as the first rule has it. */
export function inFirstRule(asked: Asked): Asked {
  return asked.firstRequest === undefined
    ? asked
    : { ...asked, request: asked.firstRequest, firstRequest: undefined, text: undefined }
}

/** What is asked, as it may be written: a resumed run has no more than that. */
export function cleaned(asked: Asked, store: Store): Asked {
  const session = store.clean(asked.session)
  const request = store.clean(asked.request)
  if (request !== asked.request) return { ...asked, session, request, text: undefined }
  return session === asked.session ? asked : { ...asked, session }
}

/** The key under which a failure that was tried again has its next outcome. */
export function nextKey(key: string): string {
  const [base, attempt] = key.split('+')
  return `${base}+${Number(attempt ?? 0) + 1}`
}

export function recordOf(asked: Asked, at: EntryName, keys: KeyRule, reused?: string): AskedRecord {
  const { session, request, by, rule, sample, id, facts } = asked
  const { tip, branch } = valueFrom(session)
  const after = tip ? { index: tip.index, kind: tip.kind } : null
  const record: Writable<AskedRecord> = { request, state: stateIn(session, keys), by, rule, after }
  if (sample !== '') record.sample = sample
  if (keys === 2 && branch.includes('#')) record.branch = branch
  if (id !== undefined) record.id = typeof id === 'function' ? id(at) : id
  if (facts) record.facts = facts
  if (reused !== undefined) record.reused = reused
  return record
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Refuses an entry that no version of this package wrote, before anything is decided by it. Once for each entry of a record: `askedIn` and
 * `outcomeIn` rely on it.
 */
export function checkEntry({ run, key, kind, request, outcome }: JournalEntry): void {
  if (kind === definition) return
  const { by, rule, state } = isPlainObject(request) ? request : {}
  const isAsked = typeof by === 'string' && typeof rule === 'string' && typeof state === 'string'
  const hasEnded = isPlainObject(outcome) && ('value' in outcome || 'error' in outcome)
  if (isAsked && (outcome === undefined || hasEnded)) return
  throw new RathError(
    'store-corrupt',
    `Entry ${key.slice(0, 16)} (${kind}) of run ${run} does not say ${isAsked ? 'how the effect ended, as { value } or { error }' : 'by whom, by which rule and from which state it was asked'}. The journal was damaged, or written by another program. Begin a new run with the last session that this one kept.`,
    { data: { run, key, kind } },
  )
}

/** What an entry was asked with; of a certain kind, if it is of that kind. */
export function askedIn(entry: JournalEntry): AskedRecord
export function askedIn<K extends Kind>(entry: JournalEntry, kind: K): AskedRecord<K> | undefined
export function askedIn(entry: JournalEntry, kind?: Kind): AskedRecord | undefined {
  return kind === undefined || entry.kind === kind ? (entry.request as unknown as AskedRecord) : undefined
}

/** How an entry ended, if it has; of a certain kind, if it is of that kind. */
export function outcomeIn(entry: JournalEntry | undefined): Outcome | undefined
export function outcomeIn<K extends Kind>(entry: JournalEntry | undefined, kind: K): Outcome<K> | undefined
export function outcomeIn(entry: JournalEntry | undefined, kind?: Kind): Outcome | undefined {
  if (entry?.outcome === undefined || (kind !== undefined && entry.kind !== kind)) return undefined
  return outcomeFrom(entry.outcome)
}

/** What the journal keeps of an outcome, as one. */
export function outcomeFrom(kept: Json): Outcome {
  return kept as unknown as Outcome
}

/** The answer that a model gave, where an entry has one. */
export function answerIn(entry: JournalEntry): ModelAnswer | undefined {
  return outcomeIn(entry, 'model')?.value?.answer
}

/** What model calls spent on it. What was done inside a borrowed effect is on no entry of this run, so the effect itself has it. */
export function spentIn(entry: JournalEntry): Usage | undefined {
  if (entry.kind === 'model') {
    const usage = answerIn(entry)?.usage
    return usage && completeUsage(usage)
  }
  const { inside } = outcomeIn(entry) ?? {}
  if (inside === undefined || askedIn(entry).reused === undefined) return undefined
  const noted = (inside.notes ?? []).map(note => ('usage' in note ? note.usage : undefined))
  return [inside.usage, ...noted].reduce<Usage>(
    (sum, usage) => (usage ? addUsage(sum, completeUsage(usage)) : sum),
    noUsage,
  )
}

/** Entries that are no effects: what requests name by digest, who claimed an entry that somebody else had asked for, and which sessions the run made. */
export const definition = 'definition'

/** Under which what is done inside an effect is counted. */
export function insideOf({ key, occurrence }: EntryName): string {
  return `${key.slice(0, 16)}.${occurrence}`
}

/** Who asks, as far as it only tells equal askers apart. */
export interface Asker {
  readonly by: string
  /** The effect that it is part of; empty outside of all. */
  readonly inside: string
  readonly sample: string
  readonly branch: string
}

export function askerOf({ by, sample, session }: Pick<Asked, 'by' | 'sample' | 'session'>): Asker {
  const { branch } = valueFrom(session)
  return asker(by, sample, branch.includes('#') ? branch : '')
}

export function askerIn({
  by,
  sample = '',
  branch = '',
}: Pick<AskedRecord, 'by' | 'sample' | 'branch'>): Asker {
  return asker(by, sample, branch)
}

function asker(by: string, whole: string, branch: string): Asker {
  if (whole === '') return { by, inside: '', sample: '', branch }
  const inside = /^[0-9a-f]{16}\.\d+/.exec(whole)?.[0] ?? ''
  return { by, inside, sample: inside === '' ? whole : whole.slice(inside.length + 1), branch }
}

/** Asked for while another effect was under way, in its scope. */
export function isInside(entry: JournalEntry): boolean {
  return askerIn(askedIn(entry)).inside !== ''
}

export function sessionKey(session: string): string {
  return `session ${session}`
}

/** The sessions that a run made, each with the last of its drives that did; none for a run recorded before 0.2. */
export function sessionsMade(entries: readonly JournalEntry[]): Map<string, number> {
  const made = new Map<string, number>()
  for (const { kind, key, occurrence, request } of entries) {
    if (kind !== definition || !key.startsWith('session ')) continue
    const { session } = request as { session?: unknown }
    if (typeof session === 'string') made.set(session, Math.max(occurrence, made.get(session) ?? 0))
  }
  return made
}

const known = new WeakMap<Store, WeakMap<object, Digest>>()

/**
 * The digest of something a request names, without the secrets in it: keys are changed from time to time, and what is keyed by the digest
 * stays the same. Made once for each object.
 */
export function cleanDigest(value: object, store: Store): Digest {
  let digests = known.get(store)
  if (digests === undefined) {
    digests = new WeakMap()
    known.set(store, digests)
  }
  let digest = digests.get(value)
  if (digest === undefined) {
    digest = digestOf(store.clean(value as Json))
    digests.set(value, digest)
  }
  return digest
}
