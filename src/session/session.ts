import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { type Branch, checkLabel } from './branch.ts'
import { foldAt, lengthOf } from './chain.ts'
import type { Chunk, ChunkInput } from './chunk.ts'
import { ChunkList } from './chunk-list.ts'
import { diff, type SessionDiff } from './diff.ts'
import { checkOnConflict, type OnConflict, type SessionFiles } from './files.ts'
import { type ReadOptions, readSession } from './jsonl/read.ts'
import { writeSession } from './jsonl/write.ts'
import { checkOptions, type Lineage, type OperationOptions, shown } from './lineage.ts'
import { type Choose, merge } from './merge.ts'
import type { Message } from './message.ts'
import type { PartInput } from './part.ts'
import { type Pending, pendingAt } from './pending.ts'
import { type Placement, placementAt, recordedSpec } from './placement.ts'
import { printSession } from './print.ts'
import { stateOn } from './state.ts'
import { lastText, viewMessages } from './summary.ts'
import type { Usage } from './usage.ts'
import { append, create, detach, fork, place, rewind, type SessionValue } from './value.ts'
import { type Verification, type VerificationProblem, verify } from './verify.ts'

export interface ForkOptions extends OperationOptions {
  /** `own` (default): the branch gets its own files when it first writes. `shared`: it works in its parent's. */
  readonly workspace?: 'own' | 'shared'
}

export interface MergeOptions extends OperationOptions {
  /** What follows the shared history: every branch's chunks in turn (default), one side's, or what a function returns. */
  readonly policy?: 'concat' | 'ours' | 'theirs' | MergePolicy
  /** What becomes of files that the branches changed differently; `refuse` by default. */
  readonly onConflict?: OnConflict
}

/** Chooses or writes the chunks that follow the shared history, for example a synthesis written by an agent. */
export type MergePolicy = (
  base: Session,
  branches: readonly MergeBranch[],
) => readonly (Chunk | ChunkInput)[] | Promise<readonly (Chunk | ChunkInput)[]>

export interface MergeBranch {
  readonly session: Session
  readonly branch: Branch
  /** What this branch has of its own. */
  readonly chunks: readonly Chunk[]
}

const key = Symbol('made by this module')
let wrap: (value: SessionValue, damage?: VerificationProblem) => Session
let unwrap: (session: Session) => SessionValue
let again: (session: Session) => Session
let damageIn: (session: Session) => VerificationProblem | undefined

/**
 * An immutable chain of chunks with a lineage: the value that flows between agents. Every operation returns a new
 * session; append and fork cost O(1) in time and memory whatever the history's length.
 */
export class Session {
  readonly #value: SessionValue
  readonly #damage: VerificationProblem | undefined
  /** How often this value was forked: names forks that have no label. */
  #forks = 0

  static {
    wrap = (value, damage) => new Session(key, value, damage)
    unwrap = session => session.#value
    again = session => wrap(session.#value, session.#damage)
    damageIn = session => session.#damage
  }

  private constructor(made: symbol, value: SessionValue, damage?: VerificationProblem) {
    if (made !== key) {
      throw new RathError(
        'invalid-argument',
        'A Session is not made with new: use Session.fromUserMessage, Session.create or Session.fromJSONL.',
      )
    }
    this.#value = value
    this.#damage = damage
    Object.freeze(this)
  }

  static fromUserMessage(content: string | readonly PartInput[], options?: OperationOptions): Session {
    return wrap(create({ kind: 'user', content }, options))
  }

  /** An agent's instructions as a session of their own. */
  static fromAgentPrompt(prompt: string, options?: OperationOptions): Session {
    return wrap(create({ kind: 'system', content: prompt }, options))
  }

  static create(kind: 'user' | 'system' | 'empty', text?: string, options?: OperationOptions): Session {
    if (kind === 'empty') {
      if (text)
        throw new RathError('invalid-argument', `An empty session takes no text, but got ${show(text)}.`)
      return wrap(create(undefined, options))
    }
    if (kind !== 'user' && kind !== 'system') {
      throw new RathError(
        'invalid-argument',
        `A session is created as user, system or empty, not ${show(kind)}.`,
      )
    }
    return wrap(create({ kind, content: text } as ChunkInput, options))
  }

  /** Reads what `toJSONL` wrote, or a session file of OpenRath Python v1. See docs/format/session.md. */
  static fromJSONL(text: string, options?: ReadOptions): Session {
    const { value, damage } = readSession(text, options)
    return wrap(value, damage)
  }

  get id(): string {
    return this.#value.id
  }

  /** Digest of the last chunk, over everything before it; undefined on an empty session. */
  get head(): Digest | undefined {
    return this.#value.tip?.id
  }

  /** Digest of what an agent on this branch could perceive. */
  get state(): Digest {
    return stateOn(this.#value.tip, this.#value.branch)
  }

  get branch(): Branch {
    return this.#value.branch
  }

  get lineage(): Lineage {
    return shown(this.#value.lineage)
  }

  get length(): number {
    return lengthOf(this.#value.tip)
  }

  get chunks(): ChunkList {
    return new ChunkList(this.#value.tip)
  }

  /** The last non-empty assistant text, or the summary that replaced it; empty when nothing was answered yet, or the last call was stopped. */
  get text(): string {
    return lastText(this.#value.tip)
  }

  /** Why the last call did not finish, such as `budget-spent` or `max-rounds`; undefined when it did. The next answer clears it. */
  get stopped(): string | undefined {
    return foldAt(this.#value.tip).stops.at(-1)?.error
  }

  /** Everything spent along this history and inside its tools and effects: sub-agents included, shared history counted once. */
  get usage(): Usage {
    return foldAt(this.#value.tip).usage
  }

  /** The part of `usage` that the model calls of this history spent themselves, without those of sub-agents. */
  get ownUsage(): Usage {
    return foldAt(this.#value.tip).own
  }

  get placement(): Placement | undefined {
    return placementAt(this.#value.tip)
  }

  /** What is not done yet: unanswered tool calls and open approvals. */
  get pending(): readonly Pending[] {
    return pendingAt(this.#value.tip)
  }

  /** The model-visible view of the history; valid for every provider. */
  messages(): Message[] {
    return viewMessages(this.chunks)
  }

  append(...chunks: readonly ChunkInput[]): Session {
    return wrap(append(this.#value, chunks), this.#damage)
  }

  user(content: string | readonly PartInput[]): Session {
    return this.append({ kind: 'user', content })
  }

  /**
   * Places the session: tools run there from here on. A folder that is named from the current one, such as `./`, is recorded under its
   * absolute name.
   */
  to(backend: string, spec?: string | JsonObject, options: OperationOptions = {}): Session {
    checkOptions(options, 'to')
    return wrap(
      place(
        this.#value,
        { kind: 'placement', backend, spec: recordedSpec(spec), by: options.by } as ChunkInput,
        options,
      ),
      this.#damage,
    )
  }

  /** A branch of its own: what happens on it is told apart from what happens on every other. */
  fork(labelOrOptions: string | ForkOptions = {}): Session {
    const { label, workspace, ...options } =
      typeof labelOrOptions === 'string' ? { label: labelOrOptions } : checkForkOptions(labelOrOptions)
    const extras = workspace === undefined ? options.extras : { ...options.extras, workspace }
    const named = extras === undefined ? options : { ...options, extras }
    const forked = fork(this.#value, label, this.#forks, named, workspace)
    // Counted only once it was made: a refused fork must not number the next one differently.
    this.#forks++
    return wrap(forked, this.#damage)
  }

  /** A branch for each label, in their order, or as many as you say: `const [quick, careful] = session.forks(['quick', 'careful'])`. */
  forks<const Labels extends readonly string[]>(labels: Labels): { -readonly [At in keyof Labels]: Session }
  forks(countOrLabels: number | readonly string[]): Session[]
  forks(countOrLabels: number | readonly string[]): Session[] {
    if (typeof countOrLabels === 'number') {
      if (!Number.isSafeInteger(countOrLabels) || countOrLabels < 0) {
        throw new RathError(
          'invalid-argument',
          `forks takes a whole number or a list of labels, not ${countOrLabels}.`,
        )
      }
      return Array.from({ length: countOrLabels }, () => this.fork())
    }
    if (!Array.isArray(countOrLabels)) {
      throw new RathError(
        'invalid-argument',
        `forks takes a whole number or a list of labels, not ${show(countOrLabels)}.`,
      )
    }
    const labels = new Set<string>()
    for (const label of countOrLabels) {
      checkLabel(label)
      if (labels.has(label)) {
        throw new RathError(
          'invalid-argument',
          `forks was given the label ${show(label)} twice; give each branch its own.`,
        )
      }
      labels.add(label)
    }
    return countOrLabels.map(label => this.fork(label))
  }

  /** The same history without parents in the graph. */
  detach(options: OperationOptions = {}): Session {
    return wrap(detach(this.#value, options), this.#damage)
  }

  /** The session as it was, up to and including a chunk given by id or index. */
  rewind(chunkIdOrIndex: string | number, options: OperationOptions = {}): Session {
    return wrap(rewind(this.#value, chunkIdOrIndex, options))
  }

  async merge(others: Session | readonly Session[], options: MergeOptions = {}): Promise<Session> {
    checkOptions(options, 'merge')
    const { policy = 'concat', onConflict, ...operation } = options
    const sessions: Session[] = [this, ...(Array.isArray(others) ? others : [others])]
    return wrap(
      await merge(
        sessions.map(valueFrom),
        choice(policy, sessions),
        operation,
        checkOnConflict(onConflict, 'merge'),
      ),
      sessions.map(damageIn).find(damage => damage !== undefined),
    )
  }

  /** What each side said and did since the last chunk they share, and how its files differ from those of that time. */
  async diff(other: Session): Promise<SessionDiff> {
    return diff(this.#value, valueFrom(other))
  }

  /**
   * Recomputes every digest and names the first chunk whose content does not match. A session read from a file, and what was made of it,
   * also says what was wrong with the file around the chunks; one that was rewound does not.
   */
  verify(): Verification {
    return verify(this.#value.tip, this.#damage)
  }

  toJSONL(): string {
    return writeSession(this.#value)
  }

  toString(): string {
    return printSession(this.#value)
  }

  /** The row of this session without its chunks. */
  toJSON(): object {
    const { id, branch, lineage } = this.#value
    return { id, head: this.head ?? null, branch, length: this.length, lineage }
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }
}

/** For the layers above: a session over a value they have built. */
export function sessionOf(value: SessionValue, damage?: VerificationProblem): Session {
  return wrap(value, damage)
}

/** For the layers above: the same session as another object, whose forks are numbered from the beginning. */
export function freshSession(session: Session): Session {
  return again(session)
}

/** For the layers above: the same session, whose files are read and joined this way from here on. */
export function withFiles(session: Session, files: SessionFiles): Session {
  const value = unwrap(session)
  return value.files === files ? session : wrap({ ...value, files }, damageIn(session))
}

/** For the layers above: what was wrong with the file that a session was read from. */
export function damageOf(session: Session): VerificationProblem | undefined {
  return damageIn(session)
}

/** For the layers above: the value in a session. */
export function valueFrom(session: Session): SessionValue {
  if (session instanceof Session) return unwrap(session)
  throw new RathError('invalid-argument', `Expected a Session, not ${show(session)}.`)
}

function choice(
  policy: NonNullable<MergeOptions['policy']>,
  sessions: readonly Session[],
): 'concat' | 'ours' | 'theirs' | Choose {
  if (policy === 'concat' || policy === 'ours' || policy === 'theirs') return policy
  if (typeof policy !== 'function') {
    throw new RathError(
      'invalid-argument',
      `A merge policy is 'concat', 'ours', 'theirs' or a function, not ${show(policy)}.`,
    )
  }
  return (base, sides) => {
    const first = sides[0] as (typeof sides)[number]
    const branches = sides.map(({ value, chunks }, i) => ({
      session: sessions[i] as Session,
      branch: value.branch,
      chunks,
    }))
    return policy(wrap(base ? rewind(first.value, base.index, {}) : create(undefined)), branches)
  }
}

function checkForkOptions(options: ForkOptions): ForkOptions {
  checkOptions(options, 'fork')
  const { workspace } = options
  if (workspace !== undefined && workspace !== 'own' && workspace !== 'shared') {
    throw new RathError('invalid-argument', `fork: workspace is 'own' or 'shared', not ${show(workspace)}.`)
  }
  return options
}

declare module '../base/errors.ts' {
  interface RathError {
    /** The work so far, on an error thrown by a run, ready to go on from. */
    session?: Session | undefined
    /** The run that it ended. */
    runId?: string
  }
}
