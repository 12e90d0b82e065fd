import { RathError, toRathError } from '../../base/errors.ts'
import { asJson, canonicalJson, type Json } from '../../base/json.ts'
import { refuseAltered } from '../../session/altered.ts'
import { foldAt } from '../../session/chain.ts'
import { Session, valueFrom } from '../../session/session.ts'
import type { JournalEntry, RunStatus, Store } from '../../store/spec.ts'
import { policy } from '../../tool/policy/policy.ts'
import { approvalIn } from '../approve/decide.ts'
import { type Begun, type Door, type Ended, type Passed, served } from '../effect.ts'
import {
  type Asked,
  askedIn,
  askerOf,
  cleaned,
  type EntryName,
  inFirstRule,
  isInside,
  type KeyRule,
  keyOf,
  type Outcome,
  outcomeFrom,
  outcomeIn,
} from '../entry.ts'
import { runSetup, waitingError } from '../run.ts'
import { type Divergence, explain } from './divergence.ts'
import { Claims, loadRecord, nameOf, type RunRecord } from './record.ts'
import type { Runnable } from './resume.ts'

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

/** `strict`: nothing but the record. `tools`: tools run again, and are compared. `model`: the model is asked again. */
export type ReplayMode = 'strict' | 'tools' | 'model'

/** A tool that was run again. */
export interface ToolComparison {
  readonly tool: string
  readonly args: Json
  readonly by: string
  /** Undefined when it was not run: it would have touched the world, or files that are not a copy. */
  readonly same: boolean | undefined
  readonly recorded: Json
  readonly now?: Json
}

export interface ReplayOptions {
  readonly record: RunRecord
  readonly mode: ReplayMode
  /** Where the run was recorded. */
  readonly store: Store
  /** Whether tools work on copies of the recorded files. */
  readonly copiesFiles: boolean
  /** Says how an effect differs from what was recorded. */
  diverge(asked: Asked, found: Missing): Promise<Divergence>
}

/** Why there is no outcome: `entry` was cut off, or was asked `times` times. */
export interface Missing {
  readonly key: string
  readonly occurrence: number
  readonly entry?: JournalEntry | undefined
}

/** The door of a replay. It leads nowhere: what is not on record is a divergence, and ends the replay. */
class ReplayDoor implements Door {
  readonly rule: KeyRule
  readonly definitions = new Map<string, Json>()
  readonly tools: ToolComparison[] = []
  divergence: Divergence | undefined
  /** Effects that were taken from the record. */
  served = 0
  readonly #options: ReplayOptions
  readonly #claims: Claims
  readonly #again = new Map<string, JournalEntry[]>()
  readonly #asked = new Set<string>()

  constructor(options: ReplayOptions) {
    this.#options = options
    this.rule = options.record.rule
    this.#claims = new Claims(options.record)
    for (const entry of options.record.effects()) {
      if (entry.kind !== 'tool' || entry.outcome === undefined) continue
      const name = callName(askedIn(entry).request)
      this.#again.set(name, [...(this.#again.get(name) ?? []), entry])
    }
  }

  define(digest: string, value: () => Json): void {
    if (!this.definitions.has(digest)) this.definitions.set(digest, this.#options.store.clean(value()))
  }

  recall(asked: Asked): Outcome | undefined {
    return this.#claims.recall(asked)
  }

  /** It does nothing to the world. */
  external(): () => void {
    return () => {}
  }

  async quiet(): Promise<void> {}

  async begin(given: Asked): Promise<Begun> {
    const { record, mode, store } = this.#options
    if (this.divergence) throw divergedError(this.divergence)
    const asked = cleaned(this.rule === 1 ? inFirstRule(given) : given, store)
    const key = keyOf(asked, this.rule)
    const { occurrence } = this.#claims.take(key, askerOf(asked))
    const at = { key, occurrence }
    if (mode === 'model' && asked.kind === 'model') return this.#live(at, false)
    const entry = record.find(key, occurrence)
    const outcome = outcomeIn(entry)
    if (outcome) {
      this.served++
      this.#claims.settle(at)
      this.#asked.add(nameOf(at))
      const passed = { ...outcome, isRecorded: true, id: entry && askedIn(entry).id }
      const compare = mode === 'tools' ? this.#comparison(asked, outcomeIn(entry, 'tool')) : undefined
      return compare ? { ...at, conclude: ended => compare(ended, passed) } : served(at, passed)
    }
    const missing = { ...at, entry }
    if (mode === 'model') {
      if (asked.light) return this.#live(at, true)
      return served(at, { ...(await this.#instead(asked, missing)), isRecorded: true })
    }
    if (entry?.kind === 'approval') throw waitingError(record.run, [approvalIn(entry)])
    if (entry) await this.#rest(asked)
    this.divergence ??= await this.#options.diverge(asked, missing)
    throw divergedError(this.divergence)
  }

  /** Done again: nothing is put on record. */
  #live(at: EntryName, isRecorded: boolean): Begun {
    return { ...at, conclude: ended => ({ ...this.#cleaned(ended), isRecorded, cause: ended.cause }) }
  }

  #cleaned({ cause: _, ...outcome }: Ended<string>): Outcome {
    return outcomeFrom(this.#options.store.clean(asJson(outcome)))
  }

  /**
   * Effects of a run without disturbances that were not asked for. What is done inside an effect is not asked for beside its outcome, nor is
   * an answer that the budget ended beside that end; what was cancelled may be cancelled earlier: of runs with such, nothing can be said.
   */
  async unasked(): Promise<readonly JournalEntry[]> {
    const effects = this.#options.record.effects()
    if (effects.some(({ kind, outcome }) => kind === 'first' || outcome === undefined)) return []
    const { record } = this.#options
    const first = effects.filter(
      entry => !isInside(entry) && !isRetry(entry) && !isSpent(entry) && !record.isReplaced(entry),
    )
    const left = () => first.filter(entry => !this.#asked.has(nameOf(entry)))
    // Something that nobody waits for may still come.
    if (left().length > 0) await this.#rest()
    return left()
  }

  /** Compares a tool that runs again with its recorded outcome, unless it would touch the world. */
  #comparison(asked: Asked, outcome: Outcome<'tool'> | undefined) {
    if (outcome?.value === undefined) return undefined
    const { tool, args } = callIn(asked.request)
    // Both as they would be written now: what is known to be a secret may have changed since.
    const recorded = this.#options.store.clean(asJson(outcome.value.outcome))
    const about = { tool, args, by: asked.by, recorded }
    const isPlaced = asked.session.placement !== undefined && !this.#options.copiesFiles
    const isLocal = asked.rule === 'read' || asked.rule === 'workspace' || asked.facts?.sandboxed === true
    const isSafe = asked.rule === 'pure' || (isLocal && !isPlaced)
    // In the order asked, whichever ends first.
    const place = this.tools.push({ ...about, same: undefined }) - 1
    if (!isSafe) return undefined
    return (ended: Ended<string>, passed: Passed): Passed => {
      const { outcome: now } = this.#cleaned(ended).value as { readonly outcome: Json }
      this.tools[place] = { ...about, now, same: canonicalJson(now) === canonicalJson(recorded) }
      return passed
    }
  }

  /** With a model that says something else, the recorded outcome of the same call, whenever it was made; else a refusal. */
  async #instead(asked: Asked, missing: Missing): Promise<Outcome> {
    const reason = 'This is a replay with a live model, and the recorded run did not do this.'
    if (asked.kind === 'tool') {
      const outcome = outcomeIn(this.#again.get(callName(asked.request))?.shift())
      if (outcome) this.served++
      return outcome ?? { value: { outcome: { kind: 'denied', reason }, durationMs: 0 } }
    }
    if (asked.kind === 'approval') return { value: { verdict: 'rejected', by: 'replay', reason } }
    this.divergence ??= await this.#options.diverge(asked, missing)
    throw new RathError('replay-diverged', `${asked.kind} of ${asked.by} is not on record. ${reason}`)
  }

  /** What has no outcome was cut off by the end of something else, and that may end it here too: give it time to. */
  async #rest(asked?: Asked): Promise<void> {
    let served = -1
    for (let turns = 0; turns < 50; turns++) {
      if (asked?.signal.aborted)
        throw new RathError('cancelled', 'The work was cancelled, as it was when it was recorded.')
      if (served !== this.served) turns = 0
      served = this.served
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}

/** A failure that was tried again: it was asked for once. */
function isRetry({ key }: JournalEntry): boolean {
  return key.includes('+')
}

/** Ended by the budget, which has an entry of its own. */
function isSpent(entry: JournalEntry): boolean {
  return outcomeIn(entry, 'model')?.error?.spent !== undefined
}

function callName(request: Json): string {
  const { tool, args } = callIn(request)
  return canonicalJson([tool, args])
}

function callIn(request: Json): { readonly tool: string; readonly args: Json } {
  return request as { readonly tool: string; readonly args: Json }
}

function divergedError(divergence: Divergence): RathError {
  return new RathError('replay-diverged', divergence.message, { data: { cause: divergence.cause } })
}
