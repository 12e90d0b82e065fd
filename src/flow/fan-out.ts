import { cancelledError, LinkedAbort } from '../base/abort.ts'
import { RathError, show } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { stopsRun } from '../base/run-stop.ts'
import { currentContext } from '../run/context.ts'
import { effect, valueIn } from '../run/effect.ts'
import { laneBefore, laneOff, rootLane } from '../session/lane.ts'
import { onLane } from '../session/lineage.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import type { Workflow } from './workflow.ts'

/** What happens when a branch fails: the whole fails, the branch is left out, or it is tried again first. */
export type OnFailure = 'fail' | 'drop' | RetryBranch

export interface RetryBranch {
  /** How often to try again, from the branch's beginning. */
  readonly retry: number
  /** What a branch that failed every time does; `fail` by default. */
  readonly otherwise?: 'fail' | 'drop'
}

export interface FanOutOptions {
  /** Branches that run at the same time; all of them by default. */
  readonly limit?: number
  /** `fail` by default: the others are cancelled, and the error of the first that failed is thrown. */
  readonly onFailure?: OnFailure
}

/** A fork and the layer that works on it. */
export interface Branch {
  readonly label: string
  readonly input: Session
  readonly layer: Workflow
}

/** How a branch ended, in the order the branches were given whatever finished first. */
export interface Ended {
  readonly label: string
  /** What each attempt began with. */
  readonly inputs: readonly Session[]
  /** Absent when it failed, was cancelled, or never began. */
  readonly session?: Session
  /** Every attempt that failed, in order; on a branch without a session, the last is why. */
  readonly failures: readonly RathError[]
  /** Where one was enough: it was this one. Others may have come to their end while they were being cancelled. */
  readonly isFirst?: boolean
  /** Others ended it: its last failure says no more than that. */
  readonly isStopped?: boolean
}

/**
 * Runs branches side by side. Until `all` have ended, or until the `first` has succeeded: then the rest are cancelled, and waited for, so
 * that nothing works on behind the back of whoever goes on.
 */
export async function fanOut(
  branches: readonly Branch[],
  until: 'all' | 'first',
  options: FanOutOptions,
): Promise<readonly Ended[]> {
  const context = currentContext()
  if (until === 'all' || context === undefined) return runBranches(branches, until, options)
  // Which one was first is a matter of luck, and so it is recorded: later only that one is run.
  let ended: readonly Ended[] | undefined
  const passed = await effect(
    context,
    {
      kind: 'first',
      session: context.input as Session,
      request: branches.map(({ label }) => label),
      rule: 'read',
      light: true,
      own: true,
    },
    async () => {
      ended = await runBranches(branches, until, options)
      return { value: ended.findIndex(end => end.isFirst) }
    },
  )
  if (ended) return ended
  const all = branches.map(notBegun)
  const first = valueIn(passed)
  const [end] = await runBranches([branches[first] as Branch], until, options)
  all[first] = end as Ended
  return all
}

async function runBranches(
  branches: readonly Branch[],
  until: 'all' | 'first',
  { limit = Infinity, onFailure = 'fail' }: FanOutOptions,
): Promise<readonly Ended[]> {
  const context = currentContext()
  const outer = context?.signal
  using abort = new LinkedAbort(outer)
  const { retry, otherwise } = typeof onFailure === 'object' ? onFailure : { retry: 0, otherwise: onFailure }
  const ended = branches.map(notBegun)
  let failed: RathError | undefined
  /** A branch that waits for a person lets the others work. */
  const waiting: RathError[] = []
  let next = 0

  const work = async (): Promise<void> => {
    while (next < branches.length && !abort.signal.aborted) {
      const i = next++
      const end = await attempt(branches[i] as Branch, retry, abort.signal)
      ended[i] = end
      const last = end.failures.at(-1)
      if (!end.session && (last?.code === 'run-waiting' || last?.code === 'needs-review')) {
        waiting.push(last)
        continue
      }
      if (end.session && until === 'first' && !abort.signal.aborted) {
        ended[i] = { ...end, isFirst: true }
        abort.abort(new Error(`${end.label} was first`))
      }
      const isFatal = stopsRun(last) || (until === 'all' && otherwise !== 'drop')
      if (!end.session && isFatal && !abort.signal.aborted) {
        failed = last
        abort.abort(new Error(`the branch ${end.label} failed`))
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, branches.length) }, work))

  if (outer?.aborted) throw cancelledError(outer)
  if (failed) throw failed
  if (until === 'first' && ended.some(end => end.session))
    for (const error of waiting) context?.run.withdraw(error)
  else if (waiting[0]) throw waiting[0]
  if (branches.length > 0 && ended.every(end => !end.session)) throw allFailed(ended)
  return ended
}

async function attempt(
  { label, input, layer }: Branch,
  retries: number,
  signal: AbortSignal,
): Promise<Ended> {
  const failures: RathError[] = []
  const inputs: Session[] = []
  for (;;) {
    const begun = inputs.length === 0 ? input : besides(input)
    inputs.push(begun)
    try {
      return { label, inputs, failures, session: await layer(begun, { signal }) }
    } catch (error) {
      failures.push(error as RathError)
      if (signal.aborted) return { label, inputs, failures, isStopped: true }
      if (stopsRun(error) || failures.length > retries) return { label, inputs, failures }
    }
  }
}

/** The same fork once more, on a lane of its own: it does not find the files that a failed attempt left. */
function besides(fork: Session): Session {
  const value = valueFrom(fork)
  const id = newId()
  const lane = laneOff(laneBefore(value.lineage.lane ?? rootLane) ?? rootLane, id)
  return sessionOf({ ...value, id, lineage: onLane(value.lineage, lane) })
}

function notBegun({ label }: Branch): Ended {
  return { label, inputs: [], failures: [] }
}

function allFailed(ended: readonly Ended[]): RathError {
  const lines = ended.map(({ label, failures }) => `  ${label}: ${failures.at(-1)?.message ?? 'never began'}`)
  const first = ended[0]?.failures.at(-1)
  const error = new RathError('run-failed', `Every branch failed:\n${lines.join('\n')}`, { cause: first })
  if (first?.session !== undefined) error.session = first.session
  return error
}

/** Refuses options that mean nothing, by name. */
export function checkFanOut({ limit, onFailure = 'fail' }: FanOutOptions, what: string): void {
  if (limit !== undefined && limit !== Infinity && !(Number.isSafeInteger(limit) && limit >= 1)) {
    throw new RathError('invalid-argument', `${what}: limit is a whole number from 1, not ${show(limit)}.`)
  }
  if (onFailure === 'fail' || onFailure === 'drop') return
  const { retry, otherwise = 'fail' } = onFailure ?? {}
  if (Number.isSafeInteger(retry) && retry >= 0 && (otherwise === 'fail' || otherwise === 'drop')) return
  throw new RathError(
    'invalid-argument',
    `${what}: onFailure is 'fail', 'drop' or { retry: 2, otherwise: 'drop' }, not ${show(onFailure)}.`,
  )
}
