import { RathError, show } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ChunkInput, ToolOutcome } from '../session/chunk.ts'
import type { ToolCallPart } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { ApprovalDecision, ApprovalRequest, GivenDecision } from './approval.ts'
import { Cancellation } from './cancellation.ts'
import { execute, neverStarted } from './execute.ts'
import { denyByPolicy, type Permissions, permit, type Ruling, Rulings, refusedByNow } from './permission.ts'
import type { AskFiles } from './policy/path-root.ts'
import { listsCommands, type Policy } from './policy/policy.ts'
import { type NotCallable, type PreparedCall, prepare } from './prepare.ts'
import { apart, runSteps, type Step, sameClaim } from './schedule.ts'
import type { Tool } from './spec.ts'
import type { ToolRecord } from './tool-record.ts'

export type { PreparedCall } from './prepare.ts'

export interface DispatchOptions {
  readonly tools: ReadonlyMap<string, Tool>
  /** As it was when the model asked. */
  readonly session: Session
  /** Cancels the turn: what runs is told to stop, and every call that has no outcome yet ends as `cancelled`. */
  readonly signal: AbortSignal
  readonly policy?: Policy | undefined
  /** How many calls run at a time; 8 by default. */
  readonly limit?: number
  /** Producer path, for approval chunks. */
  readonly by?: string | undefined
  /** Where path rules of the policy look; by default the local file system, from the folder that the session is placed in. */
  readonly files?: AskFiles | undefined
  /** Opens the sandbox of the session, or gives the one that is open. Called only when a tool asks for it. */
  sandbox?(): Promise<Sandbox>
  /** Part of every approval's id, where the same may be asked from equal sessions side by side. */
  readonly sample?: string | undefined
  /** Asks a person. Without it, a call that needs approval is denied. */
  approve?(request: ApprovalRequest): Promise<ApprovalDecision | GivenDecision>
  /** Wraps what the policy and the tool say about a call: they may look at files, and what they said may be on record. */
  ruled?(call: PreparedCall, rule: () => Promise<Ruling>): Promise<Ruling>
  /**
   * Wraps every execution: the door for effects, which may know the outcome already. `run` takes another way to open the sandbox, and
   * rejects only with what stops the run itself.
   */
  around?(call: PreparedCall, run: RunTool): Promise<ToolRecord>
  onProgress?(callId: string, data: Json): void
  onStart?(call: PreparedCall): void
  /** Told strictly in the order asked, each as soon as all before it are done; the next one waits until this returns. */
  onResult(record: CallRecord): Promise<unknown> | undefined
}

export interface CallRecord {
  readonly call: ToolCallPart
  /** As they ran; an approver may have edited them. */
  readonly args: Json
  readonly outcome: ToolOutcome
  /** How long the tool ran; 0 when it did not. */
  readonly durationMs: number
  /** Where it ran and what it did to files, if `around` told. */
  readonly evidence?: ToolRecord['evidence'] | undefined
  /** When it ended and what was done inside it, if `around` told. */
  readonly at?: number | undefined
  readonly inside?: ToolRecord['inside'] | undefined
  /** Chunks of kind `approval`: what was asked and what was decided. */
  readonly approvals: readonly ChunkInput[]
}

const defaultLimit = 8

/**
 * The one place where tools are called. Every failure of a call is its outcome and disturbs no other call. The promise rejects
 * only when a function in the options does (the door, the approver, `onResult`): calls that do not depend on that one still
 * run to their end, and their results are told up to the one that is missing.
 */
export async function dispatchCalls(calls: readonly ToolCallPart[], options: DispatchOptions): Promise<void> {
  const { limit = defaultLimit } = options
  if (!(limit >= 1)) {
    throw new RathError('invalid-argument', `limit is the number of calls at a time, not ${show(limit)}.`)
  }
  const cancellation = new Cancellation(options.signal)
  try {
    await new Turn(calls, options, cancellation).run(limit)
  } finally {
    cancellation.dispose()
  }
}

/** One turn of the model: its calls on their way from asked to told. */
class Turn {
  readonly #calls: readonly ToolCallPart[]
  readonly #options: DispatchOptions
  readonly #cancellation: Cancellation
  readonly #records: CallRecord[] = []
  #told = 0
  #isTelling = false
  #telling: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(calls: readonly ToolCallPart[], options: DispatchOptions, cancellation: Cancellation) {
    this.#calls = calls
    this.#options = options
    this.#cancellation = cancellation
  }

  async run(limit: number): Promise<void> {
    const { tools } = this.#options
    const preparing = Promise.all(this.#calls.map((call, index) => prepare(call, index, tools)))
    const prepared = await this.#cancellation.orAborted(preparing)
    try {
      if (prepared) await runSteps(this.#steps(prepared), limit)
      else for (const [index, call] of this.#calls.entries()) this.#record(index, call, never)
    } finally {
      await this.#telling
    }
    if (this.#failure) throw this.#failure.error
  }

  #steps(prepared: readonly (PreparedCall | NotCallable)[]): Step[] {
    let rulings: Rulings | undefined
    return prepared.map((call, index) => {
      const asked = this.#calls[index] as ToolCallPart
      if ('outcome' in call) {
        const run = async () => this.#record(index, asked, { outcome: call.outcome, approvals: [] })
        return { claim: apart, run }
      }
      const isFree = !this.#options.policy && !call.tool.approval
      if (isFree) {
        const run = async () => this.#record(index, asked, await this.#execute(call))
        return { claim: call.claim, run }
      }
      rulings ??= new Rulings({ ...this.#options, cancellation: this.#cancellation })
      const { permissions } = rulings
      const permission = permit(call, rulings)
      return {
        claim: call.claim,
        ready: permission.then(({ call: allowed }) => !!allowed && !sameClaim(call.claim, allowed.claim)),
        run: async () => {
          const given = await permission
          if (given.call === undefined) return this.#record(index, asked, given)
          const isLate = index > 0 || given.approvals.length > 0
          const ended = await this.#execute(given.call, isLate ? permissions : undefined)
          const { outcome } = ended
          // Only the policy denies what was let through.
          const last =
            outcome.kind === 'denied'
              ? denyByPolicy(given.call, outcome.reason, given.approvals, permissions)
              : given
          this.#record(index, asked, { ...ended, ...last })
        },
      }
    })
  }

  /** `again` when others ran, or somebody was asked, since the policy looked at the files. */
  async #execute(call: PreparedCall, again?: Permissions): Promise<Ended> {
    if (this.#failure) throw this.#failure.error
    if (this.#cancellation.isAborted) return never
    const { session, sandbox, policy, onProgress, around } = this.#options
    const { tool, parsed: args } = call
    const cancellation = this.#cancellation
    const isListed = policy !== undefined && listsCommands(policy, tool.name)
    const start: RunTool = (open = sandbox) => {
      const place = isListed && open ? async () => withFixedPath(await open()) : open
      return execute({ tool, args, callId: call.call.id, session, sandbox: place, cancellation, onProgress })
    }
    const run: RunTool = again
      ? async place => (await cancellation.orAborted(refusedByNow(call, again))) ?? start(place)
      : start
    try {
      this.#options.onStart?.(call)
    } catch {
      // Somebody who watches cannot stop a call.
    }
    const record = await (around ? around(call, run) : timed(run))
    return { ...record, call, approvals: none }
  }

  #record(index: number, call: ToolCallPart, ended: Ended): void {
    const { call: ran, outcome, approvals, durationMs = 0, evidence, at, inside } = ended
    const args = ran?.args ?? call.args
    this.#records[index] = { call, args, outcome, durationMs, evidence, at, inside, approvals }
    if (!this.#isTelling) this.#telling = this.#tell()
  }

  /** Tells what can be told; goes on by itself when somebody has to be waited for. */
  #tell(): Promise<void> | undefined {
    this.#isTelling = true
    try {
      for (let next = this.#records[this.#told]; next; next = this.#records[this.#told]) {
        this.#told++
        const telling = this.#options.onResult(next)
        if (telling) return telling.then(() => this.#tell(), this.#fail)
      }
    } catch (error) {
      this.#fail(error)
      return undefined
    }
    this.#isTelling = false
    return undefined
  }

  /** `#isTelling` stays on: a result that is missing must not be followed by the next. */
  readonly #fail = (error: unknown): void => {
    this.#failure ??= { error }
  }
}

/** A sandbox whose commands find programs outside the workspace only: a list of names is about those. */
function withFixedPath(sandbox: Sandbox): Sandbox {
  const exec: Sandbox['exec'] = (command, options) => sandbox.exec(command, { ...options, fixedPath: true })
  return new Proxy(sandbox, {
    get(target, key) {
      if (key === 'exec') return exec
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

type RunTool = (sandbox?: DispatchOptions['sandbox']) => Promise<ToolOutcome>

async function timed(run: RunTool): Promise<ToolRecord> {
  const start = performance.now()
  const outcome = await run()
  return { outcome, durationMs: performance.now() - start }
}

interface Ended {
  readonly call?: PreparedCall | undefined
  readonly outcome: ToolOutcome
  readonly approvals: readonly ChunkInput[]
  readonly durationMs?: number
  readonly evidence?: ToolRecord['evidence'] | undefined
  readonly at?: number | undefined
  readonly inside?: ToolRecord['inside'] | undefined
}

const none: readonly never[] = Object.freeze([])

const never: Ended = Object.freeze({ outcome: neverStarted, approvals: [] })
