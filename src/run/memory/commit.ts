import { untilAbort } from '../../base/abort.ts'
import { digestOf } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { type Json, type JsonObject, toJson } from '../../base/json.ts'
import { isOthers } from '../../memory/lane.ts'
import type {
  CommitOptions,
  Committed,
  Memory,
  MemoryFilter,
  MemoryStore,
  NewMemory,
  WriteOptions,
} from '../../memory/spec.ts'
import { sessionScope } from '../../memory/turns.ts'
import { type ModelLike, resolveLater } from '../../model/resolve.ts'
import type { Model, ModelAnswer, ModelRequest } from '../../model/spec.ts'
import { refuseAltered } from '../../session/altered.ts'
import type { ChunkInput } from '../../session/chunk.ts'
import type { Session } from '../../session/session.ts'
import { addUsage, type Usage } from '../../session/usage.ts'
import type { Effect } from '../../tool/spec.ts'
import { AskFailed, ask, BudgetSpent, quiet } from '../ask.ts'
import type { RunContext } from '../context.ts'
import { effect, valueIn } from '../effect.ts'
import { askedIn } from '../entry.ts'
import { type Correction, type Extracted, type ExtractOptions, extract, isSameNote } from './extract.ts'

export interface CommitMemoryOptions extends ExtractOptions {
  /** Reads the session and writes down facts; without one, what was said and done is kept as it is. */
  readonly model?: ModelLike
}

/** A memory that is opened when something is really to be done. */
export interface MemoryUse {
  readonly name: string
  /** Who asks where no scope is named: another user's notes are neither shown nor changed. */
  readonly asker: string
  open(): Promise<MemoryStore>
  /** A session or data without secrets, as the store of the runtime keeps it. */
  clean<T extends Session | Json>(value: T): Promise<T>
}

/** A commit that was done, for the record. */
export interface CommitDone {
  readonly store: string
  readonly committed: Committed
  /** The model that read the session, and what it spent. */
  readonly model?: string
  readonly usage?: Usage
}

export async function commitTo(
  memory: MemoryUse,
  given: Session,
  { model, ...options }: CommitMemoryOptions,
  context: RunContext | undefined,
): Promise<CommitDone> {
  refuseAltered(given)
  const session = await memory.clean(given)
  if (model !== undefined) {
    const own = resolveLater(model)
    return extractTo(memory, session, context?.runtime.models.instead(own) ?? own, options, context)
  }
  const where = options.scope === undefined ? {} : { scope: options.scope }
  const request = { op: 'commit', memory: memory.name, ...where }
  // A session that was begun inside the run is begun again after a crash, at another time: its entries stay where they were.
  const facts: JsonObject = { scope: options.scope ?? sessionScope(session) }
  const work = async (_: unknown, signal: AbortSignal | undefined, { scope } = facts) => {
    const store = await memory.open()
    const committed = await store.commit(session, { scope: scope as string, ...(signal && { signal }) })
    return { store: store.name, committed }
  }
  return passMemory(context, session, request, 'idempotent', work, facts)
}

export function commitChunk(memory: string, { store, committed, model, usage }: CommitDone): ChunkInput {
  const { written, from, settled } = committed
  const texts = written.map(({ text }) => text.slice(0, 2_000))
  return {
    kind: 'memory',
    op: 'commit',
    store,
    entries: written.map(({ id }) => id),
    from,
    ...(usage && { usage }),
    // What a model wrote is said nowhere else.
    extras: { memory, settled, ...(model !== undefined && { model, texts }) },
  }
}

async function extractTo(
  memory: MemoryUse,
  session: Session,
  model: Model,
  options: ExtractOptions,
  context: RunContext | undefined,
): Promise<CommitDone> {
  let usage: Usage | undefined
  // Whoever asks for one user's notes neither sees nor changes another's.
  const where = options.scope === undefined ? {} : { scope: options.scope }
  const seen: Seen = options.scope === undefined ? { asker: memory.asker } : where
  const { from, ...made } = await extract(
    session,
    {
      memory: memory.name,
      known: (query, limit) => {
        const request = { op: 'known', memory: memory.name, query, limit, ...where }
        return passMemory(context, session, request, 'read', async (_, signal) => {
          const store = await memory.open()
          const lane = session.lineage.lane ?? ''
          const asked = { ...seen, limit, lane, floor: 0, ...(signal && { signal }) }
          return (await store.find(query, asked)).hits.filter(hit => !isOthers(seen.asker, hit.scope))
        })
      },
      ask: async request => {
        const answer = await askModel(model, request, session, context)
        if (answer.usage) usage = usage ? addUsage(usage, answer.usage) : answer.usage
        return answer
      },
    },
    options,
  )
  const extracted = (await memory.clean(toJson(made, 'notes'))) as unknown as Notes
  const request: JsonObject = {
    op: 'commit',
    memory: memory.name,
    notes: extracted.entries.map(({ text, category, scope }) =>
      toJson({ text, category, scope }, 'notes'),
    ) as Json[],
    corrections: extracted.corrections.map(({ id, text }) => ({ id, text })),
  }
  const done = await passMemory(context, session, request, 'idempotent', async (_, signal) => {
    const store = await memory.open()
    const committed = await write(store, session, extracted, { where, seen }, signal && { signal })
    return { store: store.name, committed }
  })
  // A run that goes on after a crash has made its chunks again, under other ids than it had when this was done.
  return {
    ...done,
    committed: { ...done.committed, from },
    model: model.id,
    ...(usage && { usage }),
  }
}

type Notes = Pick<Extracted, 'entries' | 'corrections'>
type Where = Pick<CommitOptions, 'scope'>
type Seen = Pick<MemoryFilter, 'scope' | 'asker'>

/** May be done again after a crash in the middle of it. */
async function write(
  store: MemoryStore,
  session: Session,
  { entries, corrections }: Notes,
  { where, seen }: { readonly where: Where; readonly seen: Seen },
  stop: WriteOptions = {},
): Promise<Committed> {
  const fresh: NewMemory[] = []
  for (const entry of entries)
    if (!(await isKept(store, entry, session, { ...seen, ...stop }))) fresh.push(entry)
  const updated: Memory[] = []
  for (const correction of corrections) {
    const { entry, id, text, category } = correction
    const old = await store.read(id)
    if (old === null) fresh.push(entry)
    else if (old.text !== text)
      updated.push(await store.update(id, { text, category, ...sourceOf(correction) }, stop))
  }
  const committed = await store.commit(session, { ...where, ...stop, entries: fresh })
  return { ...committed, written: [...updated, ...committed.written] }
}

/** The same words, in the scope that was asked for or in any that is nobody else's. */
async function isKept(
  store: MemoryStore,
  { text }: NewMemory,
  session: Session,
  where: Seen & WriteOptions,
): Promise<boolean> {
  const lane = session.lineage.lane ?? ''
  const { hits } = await store.find(text, { ...where, limit: 3, lane, floor: 0 })
  return hits.some(hit => !isOthers(where.asker, hit.scope) && isSameNote(hit.text, text))
}

function sourceOf({ entry: { source } }: Correction) {
  return source ? { source } : {}
}

/** Through the door when there is one. What the model is shown instead of the conversation is part of the question. */
async function askModel(
  model: Model,
  request: Pick<ModelRequest, 'messages' | 'tools' | 'output'>,
  session: Session,
  context: RunContext | undefined,
): Promise<ModelAnswer> {
  const whole: ModelRequest = { settings: {}, ...request }
  if (context === undefined) return model.answer(whole, { signal: new AbortController().signal })
  const about = {
    settings: {},
    text: digestOf(request.messages),
    ...(request.output && { output: request.output }),
  }
  try {
    const store = await context.runtime.store
    const { answer } = await ask(
      { model: quiet(model), retry: {}, session, store, about, request: () => whole },
      context,
    )
    return answer
  } catch (error) {
    if (error instanceof BudgetSpent)
      throw new RathError('run-failed', `The budget is used up: ${error.message}. Nothing was committed.`)
    throw error instanceof AskFailed ? error.cause : error
  }
}

/**
 * An operation of a memory through the door: done once, and taken from the record afterwards. Outside every call it is simply done. `work` gets a
 * key that is the same when it is done again after a crash, and the facts that it was first begun with. A memory that does not listen to the
 * signal is left behind when the call is cancelled.
 */
export async function passMemory<T>(
  context: RunContext | undefined,
  session: Session | undefined,
  request: JsonObject,
  rule: Effect,
  work: (
    key: string | undefined,
    signal: AbortSignal | undefined,
    facts: JsonObject | undefined,
  ) => Promise<T>,
  facts?: JsonObject,
): Promise<T> {
  if (context === undefined) return work(undefined, undefined, facts)
  const asked = session ?? (context.input as Session)
  const { signal } = context
  const passed = await effect(
    context,
    {
      kind: 'memory',
      session: asked,
      request,
      rule,
      facts,
      urgent: rule !== 'read',
      keepsFailure: true,
      trace: (tracing, at, work) => tracing.memory(request, asked, context, at, work),
    },
    async at => {
      const key = `effect/${context.runId}/${at.key}/${at.occurrence}`
      const begun = at.begun && askedIn(at.begun).facts
      const done = await untilAbort(work(key, signal, begun ?? facts), signal)
      return { value: toJson(done, 'what the memory returned') }
    },
  )
  return valueIn(passed) as T
}
