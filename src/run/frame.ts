import { AsyncLocalStorage } from 'node:async_hooks'
import type { ChunkInput, InsideSession } from '../session/chunk.ts'
import { Session } from '../session/session.ts'
import { addUsage, completeUsage, noUsage, subtractUsage, type Usage } from '../session/usage.ts'
import type { ToolInside } from '../tool/tool-record.ts'
import { type KeyRule, stateIn } from './entry.ts'

/** The frame of the running code: everything that asynchronous code inherits, each part at its own place. */
const frames = new AsyncLocalStorage<readonly unknown[]>()
let places = 0

/**
 * A part of the frame: the call that the code is inside of, the effect whose work it is, the turns whose tools are running, who holds its
 * folders, the span that telemetry sees. What begins sets its part; everything inside finds it, until something inside sets it again.
 */
export class FramePart<T> {
  readonly #place = places++

  get here(): T | undefined {
    return frames.getStore()?.[this.#place] as T | undefined
  }

  run<R>(value: T, work: () => R): R {
    const frame = frames.getStore()?.slice() ?? new Array<unknown>(places).fill(undefined)
    frame[this.#place] = value
    return frames.run(frame, work)
  }
}

/**
 * What was done inside a tool or an effect, as the journal keeps it beside the outcome: `sessions` that calls made in it returned, or left
 * behind when they failed; `usage` of model calls in it that no chunk of `notes` covers; `notes` for the session of whoever made the call.
 */
export type Inside = ToolInside

/**
 * An effect whose work is running, and may make effects of its own. Those are counted apart from all others: when the outcome of the effect is
 * on record, none of them is made again, and nothing else may count on them.
 */
export class RunningEffect {
  /** The call that the effect belongs to: its session gets the chunk. */
  readonly maker: object
  readonly scope: Scope
  /** Of the tool call. */
  readonly callId: string | undefined
  readonly outer: RunningEffect | undefined
  #sessions: Map<string, InsideSession> | undefined
  #notes: ChunkInput[] | undefined
  usage: Usage = noUsage
  /** Something inside it depended on files. */
  sawFiles = false

  constructor(maker: object, sample: string, callId: string | undefined) {
    const outer = effects.here
    this.maker = maker
    this.scope = new Scope(sample)
    this.callId = callId ?? (outer?.maker === maker ? outer.callId : undefined)
    this.outer = outer
  }

  run<T>(work: () => T): T {
    return effects.run(this, work)
  }

  get notes(): ChunkInput[] {
    this.#notes ??= []
    return this.#notes
  }

  made(session: InsideSession): void {
    this.#sessions ??= new Map()
    this.#sessions.set(session.session, session)
  }

  /** What was done in it besides what its work returned, if anything was. */
  get inside(): Inside | undefined {
    const sessions = this.#sessions
    const notes = this.#notes ?? []
    const usage = this.usage === noUsage ? undefined : without(this.usage, notes)
    if (sessions === undefined && notes.length === 0 && usage === undefined) return undefined
    return {
      ...(sessions && { sessions: [...sessions.values()] }),
      ...(usage && { usage }),
      ...(notes.length > 0 && { notes }),
    }
  }
}

const effects = new FramePart<RunningEffect>()

/** The scope of code that runs in a call: that of the effect it is inside of, or the call's own. */
export function scopeIn(maker: { readonly scope: Scope }): Scope {
  const running = effects.here
  return running?.maker === maker ? running.scope : maker.scope
}

/** Says, inside an effect, that what is done there depended on files. So does then what is around it. */
export function sawFiles(): void {
  for (let running = effects.here; running; running = running.outer) running.sawFiles = true
}

/** Whether something inside the effect around this code has said so. */
export function filesWereSeen(): boolean {
  return effects.here?.sawFiles === true
}

/** Counts what a model call spent, or an effect on record, in every effect around it whose chunk lies in another session. */
export function spendInside(spent: Partial<Usage> | undefined): void {
  if (spent === undefined || effects.here === undefined) return
  const usage = completeUsage(spent)
  let last: RunningEffect | undefined
  for (let running: RunningEffect | undefined = effects.here; running; running = running.outer) {
    // The chunks of effects of one call follow each other in one session: the innermost has it.
    if (last?.maker === running.maker) continue
    running.usage = addUsage(running.usage, usage)
    last = running
  }
}

/** Where chunks about what a call does go: beside the effect whose work it is in, or to the end of its session. */
export function notesIn(maker: { readonly notes: ChunkInput[] }): ChunkInput[] {
  const running = effects.here
  return running?.maker === maker ? running.notes : maker.notes
}

/** The tool call whose work is running in a call. */
export function callAround(maker: object): string | undefined {
  const running = effects.here
  return running?.maker === maker ? running.callId : undefined
}

/** Given when a call is made in the work of an effect of `maker`: takes which session came of it. */
export function callInside(maker: object | undefined): ((made: InsideSession) => void) | undefined {
  const running = effects.here
  if (running === undefined || running.maker !== maker) return undefined
  return made => running.made(made)
}

/** What is left when chunks of the same session say part of it. */
function without(usage: Usage, notes: readonly ChunkInput[]): Usage | undefined {
  let left = usage
  for (const note of notes) {
    if (note.kind === 'effect' || !('usage' in note) || note.usage === undefined) continue
    left = subtractUsage(left, completeUsage(note.usage))
  }
  return left.totalTokens > 0 || (left.cost ?? 0) > 0 ? left : undefined
}

/** What a call is given: a session, or one that is still being made and known by its id. */
type Input = Session | { readonly id: string }

/**
 * Where calls are made from, and how equal ones are told apart: the second call of a name on the same state is `name#1`, in the order of
 * the program, whichever ends first. The first leaves no trace, so that most keys know nothing of this.
 */
export class Scope {
  readonly sample: string
  /** By name, the only input so far, or how often each was given. */
  #calls: Map<string, Input | Map<string, number>> | undefined
  /** By name, how often something was drawn here. */
  #draws: Map<string, number> | undefined

  constructor(sample = '') {
    this.sample = sample
  }

  /** The number of a draw among those of its name in this call. */
  drawOf(name: string): number {
    this.#draws ??= new Map()
    const ordinal = this.#draws.get(name) ?? 0
    this.#draws.set(name, ordinal + 1)
    return ordinal
  }

  /** The sample of a call made here. Looks at states only when a name is called again. */
  sampleOf(name: string, input: Input, rule: KeyRule): string {
    this.#calls ??= new Map()
    const before = this.#calls.get(name)
    if (before === undefined) {
      this.#calls.set(name, input)
      return this.sample
    }
    const counts = before instanceof Map ? before : new Map([[identify(before, rule), 1]])
    this.#calls.set(name, counts)
    const known = identify(input, rule)
    const ordinal = counts.get(known) ?? 0
    counts.set(known, ordinal + 1)
    return within(this.sample, name, ordinal)
  }
}

/** A sample for the `ordinal`th of several equal things. */
function within(sample: string, name: string, ordinal: number): string {
  if (ordinal === 0) return sample
  return sample === '' ? `${name}#${ordinal}` : `${sample}/${name}#${ordinal}`
}

function identify(input: Input, rule: KeyRule): string {
  return input instanceof Session ? stateIn(input, rule) : input.id
}
