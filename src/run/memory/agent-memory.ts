import { type Json, toJson } from '../../base/json.ts'
import { isOthers } from '../../memory/lane.ts'
import type { Committed, FindOptions, Found, Hit, Memory, MemoryStore, NewMemory } from '../../memory/spec.ts'
import { parseRef } from '../../memory/uri.ts'
import type { ChunkInput, MemoryHit } from '../../session/chunk.ts'
import { type Lane, rootLane } from '../../session/lane.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import type { SessionValue } from '../../session/value.ts'
import { currentContext, emit, type RunContext } from '../context.ts'
import { notesIn } from '../frame.ts'
import type { Recorder } from '../recorder.ts'
import { defaultRuntime } from '../runtime.ts'
import { type CommitMemoryOptions, commitChunk, commitTo, type MemoryUse, passMemory } from './commit.ts'
import type { Memories, MemoryLike } from './memories.ts'
import {
  isShown,
  lastSaid,
  type RecallPolicy,
  type Rendered,
  renderHits,
  usualLimit,
} from './recall-policy.ts'

export interface RememberOptions extends Omit<NewMemory, 'text' | 'lane'> {
  /**
   * Whom it is for, when that is not the session that the call around it was given: a fork made inside `forward`. The others see it when that
   * line of work is committed.
   */
  readonly session?: Session
}

export interface RecallOptions extends FindOptions {
  /** Who asks, when that is not the session that the call around it was given: its own line of work is seen, too. */
  readonly session?: Session
}

/** The memory of one agent, and what it does with it. Everything it does is on the record of the session it is done for. */
export class AgentMemory {
  readonly #memory: MemoryLike
  readonly #owner: object
  readonly #policy: RecallPolicy | false
  readonly #self: () => string
  readonly #used = new Set<Memories>()
  /** What was done outside every call; the next call puts it on the record. */
  readonly #waiting: ChunkInput[] = []
  /**
   * What was done for a session that the agent has not been called with yet, and the notes it stands in until then. By its value, which
   * layers on the way to the agent hand on in sessions of their own.
   */
  readonly #for = new WeakMap<SessionValue, { readonly chunk: ChunkInput; readonly notes: ChunkInput[] }[]>()

  /** `self` is the name of the agent, whose own scope is `agent/NAME`. */
  constructor(
    memory: MemoryLike,
    owner: object,
    policy: RecallPolicy | false = {},
    self: () => string = () => '',
  ) {
    this.#memory = memory
    this.#owner = owner
    this.#policy = policy
    this.#self = self
  }

  /** What it is called before it is open. */
  get name(): string {
    return nameOf(this.#memory)
  }

  /** Whether the default runtime can open it. */
  get isKnown(): boolean {
    return defaultRuntime().memories.knows(this.#memory)
  }

  /** Lets go of what it has open, in every runtime it was used in. */
  async release(): Promise<void> {
    const used = [...this.#used]
    this.#used.clear()
    await Promise.all(used.map(memories => memories.release(this.#owner)))
  }

  /** Before an answer: looks for what may help and puts it before the model. A failure is on the record, and the work goes on. */
  async recallInto(recorder: Recorder, context: RunContext): Promise<void> {
    recorder.add(...this.#takeFor(context))
    if (this.#policy === false) return
    const { name } = this
    let query = ''
    try {
      const { session } = recorder
      const request = recallRequest(session, name, this.#policy)
      if (request === undefined) return
      query = request.query
      const found = await this.#find(query, request.options, session, context)
      recorder.add(recallChunk(session, name, query, found, this.#policy))
      emit(context, { type: 'memory-recall', store: found.store, hits: found.hits.length })
    } catch (error) {
      if (context.aborted) throw error
      recorder.add(failedRecall(name, query, error))
      emit(context, { type: 'memory-recall', store: name, hits: 0, error: messageOf(error) })
    }
  }

  async remember(text: string, { session, ...options }: RememberOptions = {}): Promise<Memory> {
    const context = currentContext()
    const lane = laneOf(session, context)
    // Times and origins are told by the clock and by chance: a replay asks with others.
    const { at: _, expires: __, source, ...asked } = options
    const request = { op: 'remember', memory: this.name, entry: toJson({ text, ...asked }, 'entry') }
    const from = session?.id ?? context?.out.id
    const { memory, store, waits } = await passMemory(
      context,
      session,
      request,
      'idempotent',
      async (again, signal) => {
        const store = await this.#store(context)
        const waits = lane !== rootLane && store.capabilities.lanes
        const key = options.key ?? again
        const entry = {
          ...options,
          text,
          source: { ...(from && { session: from }), ...(context && { by: context.by }), ...source },
          ...(waits && { lane }),
          ...(key !== undefined && { key }),
        }
        const clean = await this.#clean(toJson(entry, 'entry'), context)
        const [memory] = await store.write([clean as unknown as NewMemory], { ...(signal && { signal }) })
        return { memory: memory as Memory, store: store.name, waits }
      },
    )
    const extras = { text: memory.text.slice(0, 2_000), ...(lane !== rootLane && { waits }) }
    this.#note(context, { kind: 'memory', op: 'remember', store, entries: [memory.id], extras }, session)
    return memory
  }

  async recall(query: string, { session, ...options }: RecallOptions = {}): Promise<readonly Hit[]> {
    const context = currentContext()
    const { store, hits, mode, fellBack } = await this.#find(
      query,
      { lane: laneOf(session, context), ...options },
      session,
      context,
    )
    const seen = hits.map(({ id, text, score }) => ({ id, text, score }))
    const extras = { mode, ...(fellBack !== undefined && { fellBack }) }
    this.#note(context, { kind: 'memory', op: 'recall', store, query, hits: seen, extras }, session)
    return hits
  }

  async forget(ref: string): Promise<number> {
    const context = currentContext()
    const request = { op: 'forget', memory: this.name, ref }
    const { store, count } = await passMemory(
      context,
      undefined,
      request,
      'idempotent',
      async (_, signal) => {
        const store = await this.#store(context)
        return { store: store.name, count: await store.forget(ref, { ...(signal && { signal }) }) }
      },
    )
    // By its id alone, so that a commit knows that it is gone.
    const id = parseRef(ref)?.id ?? ref
    this.#note(context, { kind: 'memory', op: 'forget', store, entries: [id], extras: { count } })
    return count
  }

  /** Keeps what a session said and did, or what a model makes of it. */
  async commit(session: Session, options: CommitMemoryOptions = {}): Promise<Committed> {
    const context = currentContext()
    const done = await commitTo(this.#use(context), session, options, context)
    this.#note(context, commitChunk(this.name, done))
    return done.committed
  }

  /** The same at the end of a call, on the record of that call. A failure is on the record too, and the answer stands. */
  async commitInto(recorder: Recorder, context: RunContext, options: CommitMemoryOptions): Promise<void> {
    const { name } = this
    try {
      const done = await commitTo(this.#use(context), recorder.session, options, context)
      recorder.add(commitChunk(name, done))
    } catch (error) {
      if (context.aborted) throw error
      recorder.add({ kind: 'memory', op: 'commit', store: name, error: messageOf(error) })
    }
    await recorder.keep()
  }

  #store(context: RunContext | undefined): Promise<MemoryStore> {
    const { memories } = context?.runtime ?? defaultRuntime()
    this.#used.add(memories)
    return memories.open(this.#memory, this.#owner)
  }

  /** Without the secrets that the runtime keeps out of its store. */
  async #clean<T extends Session | Json>(value: T, context: RunContext | undefined): Promise<T> {
    return (await (context?.runtime ?? defaultRuntime()).store).clean(value)
  }

  #use(context: RunContext | undefined): MemoryUse {
    return {
      name: this.name,
      asker: `agent/${this.#self()}`,
      open: () => this.#store(context),
      clean: value => this.#clean(value, context),
    }
  }

  /** Without a scope, what belongs to no other user or agent; a scope that is named is what is asked for. */
  #seen({ scope, asker }: FindOptions): { readonly asker?: string } {
    return scope === undefined ? { asker: asker ?? `agent/${this.#self()}` } : {}
  }

  #find(
    query: string,
    options: FindOptions,
    session: Session | undefined,
    context: RunContext | undefined,
  ): Promise<FoundIn> {
    // Lanes are named by chance, and the state knows the branch.
    const { signal: _, lane: __, ...asked } = options
    const request = { op: 'recall', memory: this.name, query, options: toJson(asked, 'options') }
    return passMemory(context, session, request, 'read', async (_, around) => {
      const store = await this.#store(context)
      const signal = options.signal ?? around
      const seen = this.#seen(options)
      const { mode } = options.mode === undefined && this.#policy ? this.#policy : options
      if (mode !== 'words') warnOfWords(store)
      const found = await store.find(query, { ...options, ...seen, ...(signal && { signal }) })
      // A backend of somebody's may not know the filter.
      return { ...found, hits: found.hits.filter(hit => !isOthers(seen.asker, hit.scope)), store: store.name }
    })
  }

  /** On the record of the agent's next call with that session, else of the call around it; outside every call, of the agent's next call. */
  #note(context: RunContext | undefined, chunk: ChunkInput, session?: Session): void {
    // One for the next call with a session waits for that call, and not for the end of a tool.
    const notes = !context ? this.#waiting : session ? context.notes : notesIn(context)
    const signed = context ? { ...chunk, by: context.by } : chunk
    notes.push(signed)
    if (session === undefined) return
    const value = valueFrom(session)
    this.#for.set(value, [...(this.#for.get(value) ?? []), { chunk: signed, notes }])
  }

  #takeFor({ input, run }: RunContext): ChunkInput[] {
    const taken: ChunkInput[] = []
    const value = input && valueFrom(input)
    for (const { chunk, notes } of (value && this.#for.get(value)) ?? []) {
      const place = notes.indexOf(chunk)
      if (place >= 0) taken.push(...notes.splice(place, 1))
    }
    if (value) this.#for.delete(value)
    // A run that happened before has its own.
    return run.isRecorded ? taken : [...this.#waiting.splice(0), ...taken]
  }
}

/** Of the session that was named, else of what the call around it was given. */
function laneOf(session: Session | undefined, context: RunContext | undefined): Lane {
  return (session ?? context?.input)?.lineage.lane ?? rootLane
}

function nameOf(memory: MemoryLike): string {
  if (typeof memory === 'string') return memory
  const { name, backend } = memory as { name?: string; backend?: string }
  return name ?? backend ?? 'memory'
}

let isWarned = false

/** Once: an agent that asks in other words than its notes recalls nothing, and nobody sees why. */
function warnOfWords({ name, capabilities }: MemoryStore): void {
  if (isWarned || capabilities.vectors) return
  isWarned = true
  process.emitWarning(
    `The memory ${name} recalls by words alone: a question in other words than the note finds nothing. ` +
      "Give the runtime an embedding model, configure({ embed: openai.embedding('text-embedding-3-small') }), " +
      "or say recall: { mode: 'words' } if words are enough.",
    { type: 'OpenRathWarning', code: 'OPENRATH_RECALL_BY_WORDS' },
  )
}

/** What a store found, and what it is called. */
interface FoundIn extends Found {
  readonly store: string
}

/** What to ask a memory before an answer; undefined when there is nothing to ask, or it was asked already. */
function recallRequest(
  session: Session,
  memory: string,
  policy: RecallPolicy,
): { readonly query: string; readonly options: FindOptions } | undefined {
  const { query: ask = lastSaid, limit = usualLimit, tokens: _, render: __, ...filter } = policy
  const query = ask(session)?.trim()
  if (!query || isAsked(session, memory, query)) return undefined
  return { query, options: { ...filter, limit, lane: filter.lane ?? session.lineage.lane ?? rootLane } }
}

/** The chunk that it leaves: what was asked and found, and exactly what the model is shown. What it was shown before it is not shown again. */
function recallChunk(
  session: Session,
  memory: string,
  query: string,
  { store, hits, mode, fellBack }: FoundIn,
  policy: RecallPolicy,
): ChunkInput {
  const isKnown = isShown(session)
  const { text, shown } = rendered(
    hits.filter(hit => !isKnown(hit)),
    policy,
  )
  return {
    kind: 'memory',
    op: 'recall',
    store,
    query,
    hits: hits.map(hit => asRecorded(hit, shown.includes(hit))),
    ...(text !== '' && { injected: text }),
    extras: { before: 'answer', memory, mode, ...(fellBack !== undefined && { fellBack }) },
  }
}

function failedRecall(memory: string, query: string, error: unknown): ChunkInput {
  return { kind: 'memory', op: 'recall', store: memory, query, error: messageOf(error) }
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message || error.name : String(error)) || 'it failed'
}

function rendered(hits: readonly Hit[], { render, tokens }: RecallPolicy): Rendered {
  if (hits.length === 0) return { text: '', shown: [] }
  if (render === undefined) return renderHits(hits, tokens)
  const text = render(hits)
  return { text, shown: text === '' ? [] : hits }
}

function asRecorded({ id, text, score, uri, scope, standing }: Hit, shown: boolean): MemoryHit {
  return { id, text, score, extras: { uri, scope, shown, ...(standing === 'rejected' && { standing }) } }
}

/** The same question since the user last spoke: a call that goes on after a failure, or a second agent with the same memory. */
function isAsked(session: Session, memory: string, query: string): boolean {
  const last = session.chunks.findLast(
    chunk =>
      chunk.kind === 'user' ||
      (chunk.kind === 'memory' &&
        chunk.extras?.before === 'answer' &&
        chunk.extras.memory === memory &&
        chunk.query === query),
  )
  return last?.kind === 'memory'
}
