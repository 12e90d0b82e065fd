import type { Store } from '../../../src/store/spec.ts'

/** A store that, from the moment `dies` says so, hears nothing more from this process: as if it had been killed. */
export function mortal(store: Store) {
  const state = { dead: false }
  const never = new Promise<never>(() => {})
  const guard = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const member = target[name as keyof T]
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => {
          if (state.dead) return never
          const result = member.apply(target, args)
          if (name === 'begin') return guard(result)
          return name === 'claim' ? result.then(guard) : result
        }
      },
    })
  const view: Store = {
    ...store,
    clean: value => store.clean(value),
    runs: guard(store.runs),
    sessions: guard(store.sessions),
  }
  return { state, view }
}

/** Takes the lease of a run away from a process that is gone. */
export async function release(store: Store, run: string): Promise<void> {
  const { owner } = await store.runs.get(run)
  await (await store.runs.claim(run, 'test', 1000, { instead: owner as string })).release()
}
