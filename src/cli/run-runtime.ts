import { createRuntime, defaultRuntime, type Runtime } from '../run/runtime.ts'
import type { StoreOption } from './command.ts'

/** The runtime of a command: the one that the user's file has configured, unless the command line names a store. */
export function openRuntime({ store = process.env.OPENRATH_STORE }: StoreOption): Runtime {
  return store ? createRuntime({ store }) : defaultRuntime()
}
