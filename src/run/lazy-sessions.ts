import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'

/** The sessions of a store that may not be open yet. */
export function lazySessions(open: () => Promise<Store>): Store['sessions'] {
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
