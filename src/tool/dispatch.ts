import { RathError, show } from '../base/errors.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { ChunkInput, ToolOutcome } from '../session/chunk.ts'
import type { ToolCallPart } from '../session/part.ts'
import { Cancellation, execute, neverStarted } from './execute.ts'
import { denyByPolicy, type Permissions, permit, Rulings, refusedByNow } from './permission.ts'
import { listsCommands } from './policy/policy.ts'
import { type NotCallable, type PreparedCall, prepare } from './prepare.ts'
import { apart, runSteps, type Step, sameClaim } from './schedule.ts'
import type { ToolRecord } from './tool-record.ts'
import type { CallRecord, RunTool, Turn } from './turn.ts'

const defaultLimit = 8

/**
 * The one place where tools are called: arguments are checked, the policy and people are asked, calls run as far side by side as their
 * claims allow, and results are handed over in the order asked. Every failure of a call is its outcome and disturbs no other call. The
 * promise rejects only when the turn does (its effect, its approver, `onResult`): calls that do not depend on that one still run to their
 * end, and results are handed over up to the one that is missing.
 */
export async function dispatchCalls(calls: readonly ToolCallPart[], turn: Turn): Promise<void> {
  const { limit = defaultLimit } = turn
  if (!(limit >= 1)) {
    throw new RathError('invalid-argument', `limit is the number of calls at a time, not ${show(limit)}.`)
  }
  const cancellation = new Cancellation(turn.signal)
  try {
    await new Dispatch(calls, turn, cancellation).run(limit)
  } finally {
    cancellation.dispose()
  }
}

/** The calls of a turn on their way from asked to handed over. */
class Dispatch {
  readonly #calls: readonly ToolCallPart[]
  readonly #turn: Turn
  readonly #cancellation: Cancellation
  readonly #records: CallRecord[] = []
  #told = 0
  #isTelling = false
  #telling: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(calls: readonly ToolCallPart[], turn: Turn, cancellation: Cancellation) {
    this.#calls = calls
    this.#turn = turn
    this.#cancellation = cancellation
  }

  async run(limit: number): Promise<void> {
    const { tools } = this.#turn
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
      const isFree = !this.#turn.policy && !call.tool.approval
      if (isFree) {
        const run = async () => this.#record(index, asked, await this.#execute(call))
        return { claim: call.claim, run }
      }
      rulings ??= new Rulings({ turn: this.#turn, cancellation: this.#cancellation })
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
    const turn = this.#turn
    const cancellation = this.#cancellation
    const isListed = turn.policy !== undefined && listsCommands(turn.policy, call.tool.name)
    const start: RunTool = (open = turn.sandbox?.bind(turn)) =>
      execute(call, turn, cancellation, isListed && open ? async () => withFixedPath(await open()) : open)
    const run: RunTool = again
      ? async place => (await cancellation.orAborted(refusedByNow(call, again))) ?? start(place)
      : start
    try {
      turn.onStart?.(call)
    } catch {
      // Somebody who watches cannot stop a call.
    }
    const record = await (turn.around ? turn.around(call, run) : timed(run))
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
        const telling = this.#turn.onResult(next)
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
