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
        return (...args: unknown[]) => (state.dead ? never : member.apply(target, args))
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
  const taken = await store.runs.claim(run, 'test', 1000, { instead: owner as string })
  await store.runs.update(run, taken.fence, { release: true })
}
