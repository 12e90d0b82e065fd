import type { SandboxBackend } from '../sandbox/spec.ts'
import type { Session } from '../session/session.ts'
import type { Store, StoreOptions } from '../store/spec.ts'
import { openStore } from './open-store.ts'
import { Places } from './places.ts'

/** What runs share: the store they are recorded in, and the sandboxes they work in. */
export interface Runtime extends AsyncDisposable {
  /** Opened when first used. */
  readonly store: Promise<Store>
  /** Whether the store has been asked for yet. */
  readonly isOpen: boolean
  readonly sessions: Store['sessions']
  /** The sandboxes of placed sessions; each is opened when a tool first needs it. */
  readonly places: Places
  /** Calls a layer in this runtime and not in the default one. */
  run<Options, Result>(
    layer: (session: Session, options: Options) => Result,
    session: Session,
    options?: Options,
  ): Result
  /** Ends what runs in the sandboxes, and closes them and the store. */
  close(): Promise<void>
}

export interface RuntimeOptions extends Pick<StoreOptions, 'redact'> {
  /** An open store, or the address of one; `.openrath/rath.db` in the current folder by default. */
  readonly store?: Store | string
  /** Besides `local`, which is always there. */
  readonly sandboxes?: readonly SandboxBackend[]
}

export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const { store: given, redact } = options
  const places = new Places(options.sandboxes)
  let opened: Promise<Store> | undefined
  const open = () => {
    opened ??= typeof given === 'object' ? Promise.resolve(given) : openStore(given, redact ? { redact } : {})
    return opened
  }
  const close = async () => {
    try {
      await places.close()
    } finally {
      // A store that was handed in belongs to whoever opened it.
      if (typeof given !== 'object') await (await opened)?.close()
    }
  }
  const runtime: Runtime = {
    get store() {
      return open()
    },
    get isOpen() {
      return opened !== undefined
    },
    get sessions() {
      return sessionsOf(open)
    },
    places,
    run: <Options, Result>(
      layer: (session: Session, options: Options) => Result,
      session: Session,
      options?: Options,
    ) => layer(session, Object.assign({}, options, { runtime }) as Options),
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

/** Replaces the default runtime; calls under way keep the one they started with. */
export function configure(options: RuntimeOptions): Runtime {
  standard = createRuntime(options)
  return standard
}

/** The sessions of a store that may not be open yet. */
function sessionsOf(open: () => Promise<Store>): Store['sessions'] {
  const sessions = async () => (await open()).sessions
  return {
    put: async (session: Session, options) => (await sessions()).put(session, options),
    append: async (id, chunks, options) => (await sessions()).append(id, chunks, options),
    get: async name => (await sessions()).get(name),
    row: async name => (await sessions()).row(name),
    chunks: async (name, from) => (await sessions()).chunks(name, from),
    list: async filter => (await sessions()).list(filter),
    search: async (query, options) => (await sessions()).search(query, options),
    tag: async (name, tag) => (await sessions()).tag(name, tag),
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
