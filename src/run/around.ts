import { AsyncLocalStorage } from 'node:async_hooks'
import type { Session } from '../session/session.ts'
import type { Maker } from './effect.ts'
import type { Places } from './place/places.ts'
import type { RunClock } from './run-clock.ts'

/** What code deep inside a call may know of it; `RunContext` is all of it. */
export interface Around extends Maker {
  readonly input: Session | undefined
  readonly runtime: Maker['runtime'] & { readonly places: Places }
  /** Set in a run that goes on with its record. */
  readonly clock: RunClock | undefined
}

const storage = new AsyncLocalStorage<Around>()

/** The call that the running code is inside of, if it is inside one. */
export function currentCall(): Around | undefined {
  return storage.getStore()
}

export function runInCall<T>(call: Around, work: () => T): T {
  return storage.run(call, work)
}
