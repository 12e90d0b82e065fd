import type { RathError } from '../../../src/base/errors.ts'
import type { MemoryLike } from '../../../src/run/memory/memories.ts'
import { createRuntime } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import type { Store } from '../../../src/store/spec.ts'
import { type Driven, drive, type End, Fuse, type Weather, worldOf } from './drive.ts'
import type { Plan } from './plan.ts'
import { build } from './program.ts'

/** Drives a program whose lives are cut off by never coming back: from then on nothing is written and nothing done, as after a kill. */
export async function driveHere(
  plan: Plan,
  weather: Weather,
  store: Store,
  memory: MemoryLike,
): Promise<Driven> {
  const lines: string[] = []
  const ledger = { lines: () => lines, add: (line: string) => void lines.push(line) }
  const run = `run-${weather.seed}`
  const live = async (life: number): Promise<End> => {
    const { promise: burnt, resolve } = Promise.withResolvers<'cut'>()
    const fuse = new Fuse(weather.lives[life], () => resolve('cut'))
    const runtime = createRuntime({ store: fuse.around(store), workspaces: false })
    const workflow = build(plan, worldOf(weather, life, fuse, ledger, memory))
    const end = await Promise.race([burnt, endOf(isKnown(run, store), runtime, run, workflow)])
    if (end === 'cut') await bury(run, store)
    return end
  }
  await using runtime = createRuntime({ store, workspaces: false })
  return await drive({ run, live, ledger: ledger.lines, runtime })
}

/** Begins or continues the run, and says how that ended. */
export async function endOf(
  known: Promise<boolean>,
  runtime: ReturnType<typeof createRuntime>,
  run: string,
  workflow: ReturnType<typeof build>,
  start = Session.fromUserMessage('Begin.'),
): Promise<End> {
  try {
    if (await known) await runtime.resume(run, workflow)
    else await runtime.run(workflow, start, { id: run })
    return 'done'
  } catch (error) {
    const { code, message } = error as RathError
    if (code === 'run-waiting' || code === 'needs-review') return code
    if (/is away/.test(message)) return 'away'
    throw error
  }
}

export const isKnown = async (run: string, store: Store): Promise<boolean> =>
  (await store.runs.list({ limit: 1000 })).some(({ id }) => id === run)

/** What the system does for a process that is gone: its claim ends. */
async function bury(run: string, store: Store): Promise<void> {
  const row = (await isKnown(run, store)) ? await store.runs.get(run) : undefined
  if (row === undefined || row.owner === null) return
  await (await store.runs.claim(run, 'the undertaker', 60_000, { instead: row.owner })).release()
}
