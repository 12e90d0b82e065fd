import { digestOf } from '../../base/digest.ts'
import { type JsonObject, toJson } from '../../base/json.ts'
import type { Committed, FindOptions, Found, Hit, Memory, MemoryStore, NewMemory } from '../../memory/spec.ts'
import type { Model, ModelAnswer, ModelRequest } from '../../model/spec.ts'
import type { ChunkInput } from '../../session/chunk.ts'
import { rootLane } from '../../session/lane.ts'
import type { Session } from '../../session/session.ts'
import { quiet } from '../aside.ts'
import { AskFailed, ask } from '../ask.ts'
import { currentContext, emit, type RunContext } from '../context.ts'
import type { Recorder } from '../recorder.ts'
import { defaultRuntime } from '../runtime.ts'
import { type ExtractOptions, extract } from './extract.ts'
import type { MemoryLike } from './memories.ts'
import { passMemory } from './memory-door.ts'
import { failedRecall, messageOf, recallChunk, recallRequest } from './recall.ts'
import type { RecallPolicy } from './recall-policy.ts'

export interface RememberOptions extends Omit<NewMemory, 'text' | 'lane'> {}

export interface CommitMemoryOptions extends ExtractOptions {
  /** Reads the session and writes down facts; without one, what was said and done is kept as it is. */
  readonly model?: Model
}

/** The memory of one agent, and what it does with it. Everything it does is on the record of the session it is done for. */
export class AgentMemory {
  readonly #memory: MemoryLike
  readonly #owner: object
  readonly #policy: RecallPolicy | false
  /** What was done outside every call; the next call puts it on the record. */
  #waiting: ChunkInput[] = []

  constructor(memory: MemoryLike, owner: object, policy: RecallPolicy | false = {}) {
    this.#memory = memory
    this.#owner = owner
    this.#policy = policy
  }

  /** What it is called before it is open. */
  get name(): string {
    return nameOf(this.#memory)
  }

  store(context = currentContext()): Promise<MemoryStore> {
    return (context?.runtime ?? defaultRuntime()).memories.open(this.#memory, this.#owner)
  }

  /** Before an answer: looks for what may help and puts it before the model. A failure is on the record, and the work goes on. */
  async recallInto(recorder: Recorder, context: RunContext): Promise<void> {
    recorder.add(...this.#waiting.splice(0))
    if (this.#policy === false) return
    const policy = this.#policy
    let name = nameOf(this.#memory)
    let query = ''
    try {
      const store = await this.store(context)
      name = store.name
      const { session } = recorder
      const request = recallRequest(session, name, policy)
      if (request === undefined) return
      query = request.query
      const found = await find(store, request.query, request.options, session, context)
      recorder.add(recallChunk(session, name, query, found, policy))
      emit(context, { type: 'memory-recall', store: name, hits: found.hits.length })
    } catch (error) {
      if (context.aborted) throw error
      recorder.add(failedRecall(name, query, error))
      emit(context, { type: 'memory-recall', store: name, hits: 0, error: messageOf(error) })
    }
  }

  async remember(text: string, options: RememberOptions = {}): Promise<Memory> {
    const context = currentContext()
    const store = await this.store(context)
    const lane = laneOf(context)
    const entry: NewMemory = {
      ...options,
      text,
      ...(lane !== rootLane && store.capabilities.lanes && { lane }),
    }
    const request = { op: 'remember', store: store.name, entry: toJson(entry, 'entry') }
    const [memory] = await passMemory(context, undefined, request, 'idempotent', key =>
      store.write([{ ...entry, ...(key !== undefined && entry.key === undefined && { key }) }]),
    )
    this.#note(context, {
      kind: 'memory',
      op: 'remember',
      store: store.name,
      entries: [(memory as Memory).id],
    })
    return memory as Memory
  }

  async recall(query: string, options: FindOptions = {}): Promise<readonly Hit[]> {
    const context = currentContext()
    const store = await this.store(context)
    const seen = { lane: laneOf(context), ...options }
    const found = await find(store, query, seen, undefined, context)
    const hits = found.hits.map(({ id, text, score }) => ({ id, text, score }))
    this.#note(context, { kind: 'memory', op: 'recall', store: store.name, query, hits })
    return found.hits
  }

  async forget(ref: string): Promise<number> {
    const context = currentContext()
    const store = await this.store(context)
    const request = { op: 'forget', store: store.name, ref }
    const count = await passMemory(context, undefined, request, 'idempotent', () => store.forget(ref))
    this.#note(context, { kind: 'memory', op: 'forget', store: store.name, entries: [ref] })
    return count
  }

  /** Keeps what a session said and did, or what a model makes of it. */
  async commit(session: Session, options: CommitMemoryOptions = {}): Promise<Committed> {
    const context = currentContext()
    const store = await this.store(context)
    const committed = await this.#commit(store, session, options, context)
    this.#note(context, commitChunk(store.name, committed))
    return committed
  }

  /** The same at the end of a call, on the record of that call. A failure is on the record too, and the answer stands. */
  async commitInto(recorder: Recorder, context: RunContext, options: CommitMemoryOptions): Promise<void> {
    let name = nameOf(this.#memory)
    try {
      const store = await this.store(context)
      name = store.name
      recorder.add(commitChunk(name, await this.#commit(store, recorder.session, options, context)))
    } catch (error) {
      if (context.aborted) throw error
      recorder.add({ kind: 'memory', op: 'commit', store: name, error: messageOf(error) })
    }
    await recorder.keep()
  }

  #commit(
    store: MemoryStore,
    session: Session,
    { model, scope, prompt }: CommitMemoryOptions,
    context: RunContext | undefined,
  ): Promise<Committed> {
    const where = scope === undefined ? {} : { scope }
    if (model === undefined) {
      const request = { op: 'commit', store: store.name, ...where }
      return passMemory(context, session, request, 'idempotent', () => store.commit(session, where))
    }
    return extractAndCommit(
      store,
      session,
      model,
      { ...where, ...(prompt !== undefined && { prompt }) },
      context,
    )
  }

  /** On the record of the call around it, or of the next call of this agent. */
  #note(context: RunContext | undefined, chunk: ChunkInput): void {
    if (context === undefined) this.#waiting.push(chunk)
    else context.notes.push({ ...chunk, by: context.by })
  }
}

function find(
  store: MemoryStore,
  query: string,
  options: FindOptions,
  session: Session | undefined,
  context: RunContext | undefined,
): Promise<Found> {
  const { signal: _, lane: __, ...asked } = options
  const request = { op: 'recall', store: store.name, query, options: toJson(asked, 'options') }
  const signal = context && { signal: context.signal }
  return passMemory(context, session, request, 'read', () => store.find(query, { ...options, ...signal }))
}

async function extractAndCommit(
  store: MemoryStore,
  session: Session,
  model: Model,
  options: ExtractOptions,
  context: RunContext | undefined,
): Promise<Committed> {
  const { entries, corrections, from } = await extract(
    session,
    store,
    request => askModel(model, request, session, context),
    options,
  )
  const request: JsonObject = {
    op: 'commit',
    store: store.name,
    entries: toJson(entries, 'entries'),
    corrections: toJson(corrections, 'corrections'),
  }
  return passMemory(context, session, request, 'idempotent', async () => {
    const updated: Memory[] = []
    for (const { id, text, category } of corrections) updated.push(await store.update(id, { text, category }))
    const committed = await store.commit(session, { ...options, entries })
    return { ...committed, written: [...updated, ...committed.written], from }
  })
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
    const { answer } = await ask(
      { model: quiet(model), retry: {}, session, about, request: () => whole },
      context,
    )
    return answer
  } catch (error) {
    throw error instanceof AskFailed ? error.cause : error
  }
}

function commitChunk(store: string, { written, from }: Committed): ChunkInput {
  return { kind: 'memory', op: 'commit', store, entries: written.map(({ id }) => id), from }
}

function laneOf(context: RunContext | undefined): string {
  return context?.input?.lineage.lane ?? rootLane
}

function nameOf(memory: MemoryLike): string {
  if (typeof memory === 'string') return memory
  const { name, backend } = memory as { name?: string; backend?: string }
  return name ?? backend ?? 'memory'
}
