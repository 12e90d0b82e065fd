import { RathError, show } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import type { MemoryBackend } from '../memory/spec.ts'
import { foundModel, type ModelLike, type ResolvedModel, resolveLater } from '../model/resolve.ts'
import type { SandboxBackend } from '../sandbox/spec.ts'
import type { SessionFiles } from '../session/files.ts'
import type { SessionGraph } from '../session/graph.ts'
import { type Session, withFiles } from '../session/session.ts'
import { createRedactor, type Redactor } from '../store/redact.ts'
import type { GcOptions, GcReport, RunStore, Store, StoreOptions } from '../store/spec.ts'
import { type ApprovalAnswer, decideApproval, openApprovals } from './approve/decide.ts'
import { openReviews, type Reviewed, reviewEffect, type Unfinished } from './approve/review.ts'
import { Conversation } from './conversation.ts'
import { graphOf } from './graph/graph.ts'
import { usualLease } from './journal.ts'
import { Memories, type MemoriesOptions } from './memory/memories.ts'
import { knownSecrets, openStore } from './open-store.ts'
import type { SessionInput } from './pending-session.ts'
import { Places } from './place/places.ts'
import { filesIn } from './place/session-files.ts'
import { loadRecord } from './replay/record.ts'
import { type ReplayMode, type ReplayReport, replayRun } from './replay/replay.ts'
import { type RunReport, reportRun } from './replay/report.ts'
import {
  filesBefore,
  type ResumeOptions,
  type RunModule,
  type Runnable,
  resumeRun,
  sealed,
} from './replay/resume.ts'
import { type OpenApproval, type RunSetup, runSetup } from './run.ts'
import { openTracing, type TelemetryOptions } from './telemetry/telemetry.ts'
import type { Tracing } from './telemetry/tracing.ts'

/** What runs share: the store they are recorded in, and the sandboxes they work in. */
export interface Runtime extends AsyncDisposable {
  /** Opened when first used. */
  readonly store: Promise<Store>
  /** Whether the store has been asked for yet. */
  readonly isOpen: boolean
  /** Milliseconds that a run counts as driven after its process was last heard of. */
  readonly lease: number
  readonly sessions: Store['sessions']
  /** The runs of the store, to look at. */
  readonly runs: Pick<RunStore, 'get' | 'list' | 'journal'>
  /** The sandboxes of placed sessions; each is opened when a tool first needs it. */
  readonly places: Places
  /** How sessions that went through this runtime read and join files: those it keeps, not those of another runtime. */
  readonly files: SessionFiles
  /** The memories of agents; each is opened when first needed. */
  readonly memories: Memories
  /** What names of models stand for in it. */
  readonly models: Models
  /** What follows its runs; nothing unless telemetry was asked for and somebody is told. */
  readonly tracing: Tracing | undefined
  /**
   * Brings the files of a session, as its last call left them, to the folder it was placed in, or to another one. What is there is kept before
   * it is replaced; the digest of it is returned.
   */
  checkout(session: Session, folder?: string): Promise<string | undefined>
  /** Calls a layer in this runtime and not in the default one. */
  run<Options, Result, Input = SessionInput>(
    layer: (input: Input, options: Options) => Result,
    input: NoInfer<Input>,
    options?: Options & RunOptions,
  ): Result
  /** One name for a user's conversation over many turns, with a check that nobody else wrote. */
  conversation(name: string): Conversation
  /**
   * Goes on with a run that was cut off, failed, was cancelled or waits. What is on record is not done again. Without a workflow, the one
   * that the run says it is. It goes on in the folder that it began in and is refused elsewhere, with `workspace-elsewhere`, unless `movedTo`
   * names where the project lies now. Refused with `run-owned` while another process drives it, with `needs-review` when only a person can tell
   * whether something happened. A run that is done gives its session.
   */
  resume<Options extends object | undefined>(
    runId: string,
    workflow?: (session: Session, options: Options) => Promise<Session>,
    options?: NoInfer<Options> & ResumeOptions,
  ): Promise<Session>
  /** Runs a workflow again with recorded outcomes. Nothing of it is kept. */
  replay(runId: string, workflow: Runnable, options?: { readonly mode?: ReplayMode }): Promise<ReplayReport>
  /** The questions of a run that nobody has answered yet, in the order asked, from any process. */
  approvals(runId: string): Promise<OpenApproval[]>
  /** Answers a question of a run that waits, from any process; `resume` then goes on. */
  decide(runId: string, approval: string, decision: ApprovalAnswer): Promise<void>
  /** What a run in `needs-review` was cut off in, from any process: somebody has to find out whether it happened. */
  unfinished(runId: string): Promise<Unfinished[]>
  /** Says whether an effect happened that was cut off, by its id. */
  review(runId: string, callId: string, found: Reviewed): Promise<void>
  /**
   * Asks for the end of a run, from any process. Whoever drives it stops when it next renews its lease; one that nobody drives is cancelled
   * at once. `resume` continues it all the same.
   */
  cancel(runId: string, request?: { readonly by?: string; readonly reason?: string }): Promise<void>
  /** What a run did and spent, and what it took from another. */
  report(runId: string): Promise<RunReport>
  /**
   * The session graph of a run by its id, of a session by id, prefix or tag with what it came from and what came of it, or of `all` sessions.
   * What sub-agents and tools made inside is in `links`; steps that were never kept are left out.
   */
  graph(runOrSession: string): Promise<SessionGraph>
  /** Frees what no session, run or tag reaches any more. Files of workspaces are for `rath gc`. */
  gc(options?: GcOptions): Promise<GcReport>
  /** Ends what runs in the sandboxes, and closes them and the store. */
  close(): Promise<void>
}

/** How a run is begun, besides the options of a call. */
export interface RunOptions {
  /** Its id, which no other run may have; a new one by default. */
  readonly id?: string
  /** A run to borrow outcomes from: what asks for the same from the same state is not paid for again. */
  readonly reuse?: string
  /** Where its code is, for `resume` without a workflow. */
  readonly module?: RunModule
}

export interface RuntimeOptions extends Pick<StoreOptions, 'redact'> {
  /** An open store, or the address of one; `.openrath/rath.db` in the current folder by default. */
  readonly store?: Store | string
  /** Besides `local`, `isolated`, `docker` and `opensandbox`. */
  readonly sandboxes?: readonly SandboxBackend[]
  /** Where files of sessions and folders of branches are kept, outside every workspace; `OPENRATH_HOME` or `~/.openrath` by default. `false` keeps none: forks then share their files. */
  readonly workspaces?: string | false
  /** Besides `local`, `postgres` and `openviking`. */
  readonly memories?: readonly MemoryBackend[]
  /** What names of models stand for, before the environment and the config file: `{ 'openai/gpt-5.5': scripted([…]), fast: provider }`. */
  readonly models?: Readonly<Record<string, ModelLike>>
  /** Lets memories find by meaning: an AI SDK embedding model, or an embedder of your own. */
  readonly embed?: MemoriesOptions['embed']
  /** Milliseconds that a run counts as driven after its process was last heard of; 15,000 by default. */
  readonly lease?: number
  /** Spans and metrics through `@opentelemetry/api`; none by default, and then nothing of it is loaded. */
  readonly telemetry?: boolean | TelemetryOptions
}

export function createRuntime(options: RuntimeOptions = {}): Runtime {
  return runtimeWith(options, new Places(options))
}

function runtimeWith(options: RuntimeOptions, places: Places): Runtime {
  const { store: given, redact, lease = usualLease } = options
  const memories = new Memories({
    memories: options.memories,
    ...(options.embed && { embed: options.embed }),
  })
  const models = new Models(options.models)
  const files = filesIn(places)
  places.travelThrough(() => open())
  let opened: Promise<Store> | undefined
  const open = () => {
    if (opened) return opened
    opened = typeof given === 'object' ? Promise.resolve(given) : openStore(given, redact ? { redact } : {})
    // One that cannot be reached now may be there for the next call.
    opened.then(
      store => {
        ready = store
      },
      () => {
        opened = undefined
      },
    )
    return opened
  }
  const close = async () => {
    try {
      await Promise.all([places.close(), memories.close()])
    } finally {
      // A store that was handed in belongs to whoever opened it.
      if (typeof given !== 'object') await (await opened)?.close()
    }
  }
  // Before the store is open, the secrets are known that it would be opened with.
  let ready = typeof given === 'object' ? given : undefined
  let early: Redactor | undefined
  const words = (text: string) => {
    if (ready) return ready.clean(text)
    early ??= createRedactor(knownSecrets(), redact)
    return early.text(text)
  }
  const telemetry = openTracing(options.telemetry, async value => (await open()).clean(value), words)
  const runtime: Runtime = {
    get store() {
      return open()
    },
    get isOpen() {
      return opened !== undefined
    },
    get sessions() {
      return lazySessions(open, files)
    },
    lease,
    places,
    files,
    memories,
    models,
    get tracing() {
      return telemetry?.heard
    },
    checkout: (session, folder) => places.checkout(session, folder),
    runs: {
      get: async id => (await open()).runs.get(id),
      list: async filter => (await open()).runs.list(filter),
      journal: async id => (await open()).runs.journal(id),
    },
    run: (layer, session, { id, reuse, module, ...rest } = {} as never) => {
      const begun = id !== undefined || reuse !== undefined || module !== undefined
      const setup = begun && { [runSetup]: newRun({ id, reuse, module }, open) }
      return layer(session, { ...rest, ...setup, runtime } as never)
    },
    conversation: name =>
      new Conversation(name, runtime.sessions, (layer, input, callOptions) =>
        layer(input, { ...callOptions, runtime } as never),
      ),
    async resume(id, workflow, callOptions) {
      const given = { ...callOptions, runtime } as object
      return withFiles(
        await resumeRun(id, workflow, { store: await open(), lease, places, options: given }),
        files,
      )
    },
    async replay(id, workflow, { mode = 'strict' } = {}) {
      checkMode(mode)
      const recorded = await open()
      // Secrets are taken out as the store of the run takes them out.
      const clean: Store['clean'] = value => recorded.clean(value)
      await using memory = await openStore('memory:', { secrets: {}, redact: text => clean(text) })
      const began = mode === 'tools' ? await filesBefore(id, recorded) : undefined
      if (began) await places.bring([began.tree], began.packs)
      const copies = began && places.scratch(began.tree)
      await using scratch = runtimeWith(
        { ...options, store: { ...memory, clean } },
        copies ?? new Places(options),
      )
      const copiesFiles = copies !== undefined
      return await replayRun(id, workflow, mode, { store: recorded, scratch, copiesFiles })
    },
    approvals: async id => openApprovals(id, await open()),
    decide: async (id, approval, decision) => decideApproval(id, approval, decision, await open()),
    unfinished: async id => openReviews(id, await open()),
    review: async (id, callId, found) => reviewEffect(id, callId, found, { store: await open(), lease }),
    cancel: async (id, request) => void (await (await open()).runs.cancel(id, request)),
    report: async id => reportRun(id, await open()),
    graph: async name => (await graphOf(await open(), name)).graph,
    gc: async gcOptions => (await open()).gc(gcOptions),
    close,
    [Symbol.asyncDispose]: close,
  }
  return runtime
}

let standard: Runtime | undefined

/** The runtime of calls that name none. */
export function defaultRuntime(): Runtime {
  standard ??= createRuntime()
  return standard
}

/** A conversation by its name, in the default runtime. */
export function conversation(name: string): Conversation {
  return defaultRuntime().conversation(name)
}

/** Replaces the default runtime; calls under way keep the one they started with. */
export function configure(options: RuntimeOptions): Runtime {
  standard = createRuntime(options)
  return standard
}

type Given<T> = { readonly [K in keyof T]?: T[K] | undefined }

function newRun({ id, reuse, module }: Given<RunOptions>, open: () => Promise<Store>): RunSetup {
  return {
    ...(id !== undefined && { id }),
    ...(reuse !== undefined && { lender: async () => loadRecord(reuse, await open()) }),
    data: { ...(reuse !== undefined && { reuse }), ...(module && { module: { ...sealed(module) } }) },
  }
}

function checkMode(mode: unknown): void {
  if (mode === 'strict' || mode === 'tools' || mode === 'model') return
  throw new RathError('invalid-argument', `A replay's mode is strict, tools or model, not ${show(mode)}.`)
}

/** The sessions of a store that may not be open yet. */
function lazySessions(open: () => Promise<Store>, files: SessionFiles): Store['sessions'] {
  const sessions = async () => (await open()).sessions
  return {
    put: async (session: Session, options) =>
      withFiles(await (await sessions()).put(session, options), files),
    append: async (id, chunks, options) => (await sessions()).append(id, chunks, options),
    get: async name => withFiles(await (await sessions()).get(name), files),
    row: async name => (await sessions()).row(name),
    chunks: async (name, from) => (await sessions()).chunks(name, from),
    list: async filter => (await sessions()).list(filter),
    search: async (query, options) => (await sessions()).search(query, options),
    tag: async (name, tag, options) => (await sessions()).tag(name, tag, options),
    untag: async tag => (await sessions()).untag(tag),
    delete: async name => (await sessions()).delete(name),
    subscribe(listener, options) {
      let disposed = false
      let inner: Disposable | undefined
      void sessions().then(store => {
        if (!disposed) inner = store.subscribe(listener, options)
      })
      return {
        [Symbol.dispose]() {
          disposed = true
          inner?.[Symbol.dispose]()
        },
      }
    },
  }
}

/** What names of models stand for in a runtime; they go before the environment and the config file. */
class Models {
  readonly #byName: ReadonlyMap<string, ResolvedModel>

  constructor(given: Readonly<Record<string, ModelLike>> = {}) {
    if (!isPlainObject(given)) {
      throw new RathError('invalid-argument', `models is an object of models by name, not ${show(given)}.`)
    }
    this.#byName = new Map(Object.entries(given).map(([name, like]) => [name, resolveLater(like)]))
  }

  /** The model to ask where a part of a workflow has this one. Throws `unknown-model` where a name stands for nothing. */
  instead(model: ResolvedModel): ResolvedModel {
    return foundModel(model, one => this.#byName.get(one.named ?? '') ?? one)
  }
}
