import type { RunContext } from './context.ts'

/** Work that is part of a run: the run goes on until everything of it has ended, also what nobody waits for. */
export async function underWay<T>({ run, runtime }: RunContext, work: () => Promise<T>): Promise<T> {
  run.enter()
  try {
    return await work()
  } finally {
    if (run.leave()) await runtime.places.leave(run.id)
  }
}
