import { type RathError, toRathError } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { refuseAltered } from '../../session/altered.ts'
import { foldAt } from '../../session/chain.ts'
import { Session, valueFrom } from '../../session/session.ts'
import type { RunStatus, Store } from '../../store/spec.ts'
import { policy } from '../../tool/policy/policy.ts'
import { askedIn } from '../entry.ts'
import { runSetup } from '../run.ts'
import { type Divergence, explain } from './divergence.ts'
import { ReplayDoor, type ReplayMode, type ToolComparison } from './replay-door.ts'
import { loadRecord, type Runnable } from './resume.ts'

export interface ReplayReport {
  readonly run: string
  readonly mode: ReplayMode
  /**
   * Everything was as it was: every effect, the end, and the state at the end; tools that ran again gave the same. In mode `model`, which may
   * say something else, that the run ended as it did and did nothing that is not on record.
   */
  readonly ok: boolean
  /** How the run was recorded to have ended, and how the replay did. */
  readonly recorded: RunStatus
  readonly status: RunStatus
  /** The state at the end, then and now. */
  readonly recordedState?: string
  readonly state?: string
  /** Effects that were taken from the record. */
  readonly served: number
  readonly divergence?: Divergence
  /**
   * Effects on record that the workflow does not ask for any more, where the replay ended as the run did. None are told of a run in which
   * something was cancelled, cut off or raced.
   */
  readonly unasked: readonly Unasked[]
  /** In mode `tools`: each tool that ran again. */
  readonly tools: readonly ToolComparison[]
  /** What the replay made. */
  readonly session?: Session
  /** Why it failed, when it did. */
  readonly error?: RathError
}

export interface Unasked {
  readonly kind: string
  readonly by: string
  readonly request: Json
}

export interface ReplayPlace {
  /** Where the run was recorded. It is only read. */
  readonly store: Store
  /** A runtime in which nothing that the replay does is kept. */
  readonly scratch: { readonly store: Promise<Store> }
  /** Whether its tools work on copies of the recorded files. */
  readonly copiesFiles: boolean
}

/** Runs a workflow again with recorded outcomes, and says whether it ends as it did. */
export async function replayRun(
  run: string,
  workflow: Runnable,
  mode: ReplayMode,
  { store, scratch, copiesFiles }: ReplayPlace,
): Promise<ReplayReport> {
  const row = await store.runs.get(run)
  const record = await loadRecord(run, store)
  const input = await store.sessions.get(row.input as string)
  refuseAltered(input)
  const scratchStore = await scratch.store
  const door: ReplayDoor = new ReplayDoor({
    record,
    mode,
    store,
    copiesFiles,
    diverge: (asked, missing) =>
      explain(asked, missing, { record, store, scratch: scratchStore, definitions: door.definitions }),
  })
  // What the policy of the run said is on record; it takes one to be asked for that.
  const ruled = row.data.policy === true && { policy: policy({}) }
  const { onBudget } = row.data
  const options = {
    runtime: scratch,
    ...ruled,
    ...(onBudget !== undefined && { onBudget }),
    [runSetup]: { id: run, door },
  }
  const { session, error } = await ended(workflow(input, options as never), store)
  const output = row.output === null ? undefined : await store.sessions.get(row.output)
  if (output) refuseAltered(output)
  const status = error ? statusOf(error) : 'done'
  const divergence = door.divergence ?? (mode === 'model' ? undefined : endDifference(run, output, session))
  const isDone = status === 'done' && row.status === 'done' && divergence === undefined && mode === 'strict'
  const unasked = isDone ? await door.unasked() : []
  const isSame = output !== undefined && session !== undefined && endsAs(output, session)
  return {
    run,
    mode,
    ok:
      divergence === undefined &&
      status === row.status &&
      (mode === 'model' || isSame) &&
      door.tools.every(({ same }) => same !== false),
    recorded: row.status,
    status,
    ...(output && { recordedState: output.state }),
    ...(session && { state: session.state, session }),
    served: door.served,
    ...(divergence && { divergence }),
    unasked: unasked.map(entry => {
      const { by, request } = askedIn(entry)
      return { kind: entry.kind, by, request: store.clean(request) }
    }),
    tools: door.tools,
    ...(error && { error }),
  }
}

async function ended(
  pending: Promise<Session>,
  store: Store,
): Promise<{ session?: Session; error?: RathError }> {
  try {
    return { session: await pending }
  } catch (thrown) {
    const error = store.clean(toRathError(thrown))
    return { error, ...(error.session instanceof Session && { session: error.session }) }
  }
}

function statusOf({ code }: RathError): RunStatus {
  if (code === 'cancelled') return 'cancelled'
  return code === 'run-waiting' ? 'waiting' : 'failed'
}

/** They said and did the same, and left the same files. */
function endsAs(output: Session, session: Session): boolean {
  return output.state === session.state && treeOf(output) === treeOf(session)
}

function treeOf(session: Session): string | undefined {
  return foldAt(valueFrom(session).tip).tree
}

/** Every effect was as recorded, and still the sessions differ: the first chunk at which they do. */
function endDifference(
  run: string,
  output: Session | undefined,
  session: Session | undefined,
): Divergence | undefined {
  if (output === undefined || session === undefined || endsAs(output, session)) return undefined
  const length = Math.max(output.length, session.length)
  let index = 0
  while (index < length && output.chunks.at(index)?.state === session.chunks.at(index)?.state) index++
  const at = session.chunks.at(index) ?? output.chunks.at(index)
  const elsewhere = output.state === session.state ? 'in its files' : 'in the branch they are on'
  const what = at ? `from chunk ${index} (${at.kind}) on` : elsewhere
  return {
    cause: 'other state',
    after: index === 0 || at === undefined ? null : { index: index - 1, kind: at.kind },
    message: `Every effect of run ${run} was asked for as recorded, but the session at the end differs ${what}: code between the effects makes something else of their outcomes.`,
    diff: '',
  }
}
