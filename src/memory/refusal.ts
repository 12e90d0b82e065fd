import { cancelledError } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
import type { MemoryRef } from './spec.ts'

/** Nothing is asked of a memory that was closed, nor for somebody who has given up. */
export function checkOpen(name: string, isClosed: boolean, signal: AbortSignal | undefined): void {
  if (isClosed) throw new RathError('store-closed', `The memory ${name} is closed; open it again.`)
  if (signal?.aborted) throw cancelledError(signal)
}

export function missingMemory(ref: MemoryRef): RathError {
  return new RathError(
    'memory-missing',
    `There is no memory ${show(ref)}, or it has ended. Take its id from list or find.`,
  )
}
