import { createTwoFilesPatch } from 'diff'
import { canonicalJson, type Json, type JsonObject } from '../../base/json.ts'
import type { JournalEntry, Store } from '../../store/spec.ts'
import { type Asked, askedIn, stateIn } from '../entry.ts'
import { promptId } from '../prompt.ts'
import type { RunRecord } from './record.ts'

/** What in the code, or in what it was given, is not as it was. */
export type DivergenceCause =
  | 'other prompt'
  | 'other tool schema'
  | 'other settings'
  | 'other request'
  | 'other order'
  | 'other state'
  | 'missing outcome'

/** The first point at which a replay asked for something that the recorded run had not. */
export interface Divergence {
  readonly cause: DivergenceCause
  /** The kind of effect; none when all effects were the same and the end differs. */
  readonly kind?: string
  /** Who asked. */
  readonly by?: string
  /** The chunk of the session after which it was asked; null at its start. */
  readonly after: { readonly index: number; readonly kind: string } | null
  /** All of it in a sentence, with the difference. */
  readonly message: string
  /** The nearest recorded request against the one made now, as a patch; empty when there is none to compare with. */
  readonly diff: string
}

export interface DivergenceSources {
  readonly record: RunRecord
  /** Where the run was recorded, and where the replay writes. */
  readonly store: Store
  readonly scratch: Store
  /** Of the replay, by digest. */
  readonly definitions: ReadonlyMap<string, Json>
}

export async function explain(
  asked: Asked,
  missing: { readonly occurrence: number; readonly entry?: JournalEntry | undefined; readonly key: string },
  sources: DivergenceSources,
): Promise<Divergence> {
  const near = nearest(asked, sources.record)
  const cause = causeOf(asked, missing, near, sources.record)
  const diff = near && cause !== 'missing outcome' ? await differences(near, asked, sources) : ''
  const tip = asked.session.chunks.at(-1)
  const after = tip ? { index: tip.index, kind: tip.kind } : null
  const where = after ? `after chunk ${after.index} (${after.kind})` : 'at the start of the session'
  const message = `The replay differs from run ${sources.record.run}: ${cause}. ${asked.by} asked for ${told(asked)} ${where}, and ${why[cause]}.${diff && `\n${diff}`}`
  return { cause, kind: asked.kind, by: asked.by, after, message, diff }
}

const why: Record<DivergenceCause, string> = {
  'other prompt': 'was given other instructions then',
  'other tool schema': 'was shown other tools then',
  'other settings': 'another model or other settings were used then',
  'other request': 'something else was asked for then',
  'other order': 'the same was asked for at another point then',
  'other state': 'the conversation before it was another one then',
  'missing outcome': 'the record has no outcome for it',
}

function told({ kind, request }: Asked): string {
  const { tool } = (request ?? {}) as { tool?: unknown }
  return typeof tool === 'string' ? `${kind} ${tool}` : kind
}

function causeOf(
  asked: Asked,
  { occurrence, entry }: { readonly occurrence: number; readonly entry?: JournalEntry | undefined },
  near: JournalEntry | undefined,
  record: RunRecord,
): DivergenceCause {
  if (entry || occurrence > 0) return 'missing outcome'
  if (near === undefined) return 'missing outcome'
  const state = stateIn(asked.session, record.rule)
  const wanted = canonicalJson(asked.request)
  const same = record
    .effects()
    .filter(other => other.kind === asked.kind && canonicalJson(askedIn(other).request) === wanted)
  // Asked from here before, but not so often.
  if (same.some(other => askedIn(other).state === state)) return 'missing outcome'
  // The same question of the same agent, later in a conversation that went differently, is no other order.
  const isElsewhere = same.some(other => askedIn(other).by !== askedIn(near).by)
  if (askedIn(near).state !== state) return isElsewhere ? 'other order' : 'other state'
  if (isElsewhere) return 'other order'
  const before = askedIn(near).request as JsonObject
  const now = asked.request as JsonObject
  const differs = (...names: string[]) =>
    names.some(name => canonicalJson(before?.[name] ?? null) !== canonicalJson(now?.[name] ?? null))
  if (asked.kind === 'tool') return differs('schema', 'effect') ? 'other tool schema' : 'other request'
  if (asked.kind !== 'model') return 'other request'
  if (differs('prompt', 'instruction', 'question', 'text')) return 'other prompt'
  return differs('tools') ? 'other tool schema' : 'other settings'
}

/** The recorded effect to compare with: of the same kind from the same state, best of the same agent; else the one nearest in its session. */
function nearest(asked: Asked, record: RunRecord): JournalEntry | undefined {
  const state = stateIn(asked.session, record.rule)
  const length = asked.session.length
  let best: { entry: JournalEntry; score: number } | undefined
  for (const entry of record.effects()) {
    if (entry.kind !== asked.kind) continue
    const other = askedIn(entry)
    const apart = Math.abs((other.after?.index ?? -1) - (length - 1))
    const score = (other.state === state ? 1e9 : 0) + (other.by === asked.by ? 1e6 : 0) - Math.min(apart, 1e5)
    if (best === undefined || score > best.score) best = { entry, score }
  }
  return best?.entry
}

/** Milliseconds that a comparison may take: requests are as long as what models and tools wrote. */
const patience = 2000

async function differences(near: JournalEntry, asked: Asked, sources: DivergenceSources): Promise<string> {
  const { record, store, scratch, definitions } = sources
  const then = await readable(askedIn(near).request, digest => record.defined(digest)?.request, store)
  const before = store.clean(then)
  const now = store.clean(await readable(asked.request, digest => definitions.get(digest), scratch))
  if (before === now) return ''
  const options = { context: 2, timeout: patience }
  const patch = createTwoFilesPatch('recorded', 'now', before, now, undefined, undefined, options)
  return patch ?? 'The requests differ too much to be compared line by line.'
}

/** A request with what it names by digest written out, one thing a line. */
async function readable(
  request: Json,
  definition: (digest: string) => Json | undefined,
  store: Store,
): Promise<string> {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return lines(request)
  const { prompt, tools, ...rest } = request as JsonObject
  const parts = [lines(rest)]
  if (typeof prompt === 'string') parts.unshift(await promptText(prompt, store))
  if (typeof tools === 'string') parts.push(lines(definition(tools) ?? tools))
  return parts.join('\n')
}

async function promptText(digest: string, store: Store): Promise<string> {
  try {
    const { chunks } = await store.sessions.get(promptId(digest))
    return chunks.map(chunk => chunk.text).join('\n')
  } catch {
    return `prompt ${digest}`
  }
}

function lines(value: Json): string {
  return JSON.stringify(value, null, 2)
}
