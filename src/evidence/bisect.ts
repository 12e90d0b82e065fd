import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cancelledError } from '../base/abort.ts'
import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import { Breath } from '../sandbox/workspace/breath.ts'
import type { ObjectStore } from '../sandbox/workspace/objects.ts'
import { restoreFolder } from '../sandbox/workspace/restore.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'
import { type Cause, type FileState, fileHistory, sessionsIn } from './file-history.ts'
import { bringFiles, checkKept, openKeptFiles } from './kept-files.ts'
import { oneLine } from './one-line.ts'
import { type Producer, producerOf } from './producer.ts'
import { type Answer, firstFailing } from './search-first.ts'

/** Whether the files in a folder are in order. `skip` when that cannot be told of them, as with `git bisect`. */
export type BisectCheck = (folder: string, at: Checked) => Promise<Answer | boolean> | Answer | boolean

/** What a check is run on. */
export interface Checked {
  readonly tree: Digest
  /** What made the files so; absent for those from before the session. */
  readonly producer?: Producer
  readonly signal?: AbortSignal
}

export interface BisectOptions {
  /** Finds branches whose chunks a merge left out. */
  readonly store?: Store
  /** The folder that the runtime kept files in; by default where runtimes of this machine do. */
  readonly workspaces?: string
  /** Checks every state instead of a few, which finds every change from passing to failing. Default false. */
  readonly every?: boolean
  /** Where scratch folders are made; the system's folder for such by default. */
  readonly scratch?: string
  /** Told after each check. */
  readonly onCheck?: (probe: Probe) => void
  readonly signal?: AbortSignal
}

/** Something that is not in the folder as it was: it was never kept, or the store has lost it. */
export interface NotRestored {
  readonly path: string
  readonly why: string
}

export interface Probe extends Checked {
  /** Its place among the states, from 0: the files that the session began with. */
  readonly state: number
  readonly cause: Cause['kind']
  readonly answer: Answer
  readonly notRestored: readonly NotRestored[]
}

/**
 * `found`: `first` fails, and the state before it passes. `suspects`: one of several, since those between could not be checked. `passes`:
 * the last state is in order. `fails-from-start`: the files were out of order before the session changed any.
 */
export interface Bisection {
  readonly result: 'found' | 'suspects' | 'passes' | 'fails-from-start'
  readonly first?: FirstFailing
  readonly suspects: readonly FirstFailing[]
  /** In the order in which they were made. Each tree is checked once, however often it occurs. */
  readonly probes: readonly Probe[]
  /** How many states the session went through. */
  readonly states: number
  /**
   * What the checks show of the history. `once`, `never`: every state was checked, and that is how often it went from passing to failing. `several`: it did so more
   * than once, `first` is one of them, and `others` are the rest that are known. `assumed`: only some were checked, and `first` is the only one
   * if what broke was never mended in between.
   */
  readonly changes: 'never' | 'once' | 'several' | 'assumed'
  readonly others: readonly FirstFailing[]
}

/** A state that fails behind one that passes. `merge` means that each side passes and the two together do not. */
export interface FirstFailing {
  readonly state: number
  readonly tree: Digest
  readonly cause: Cause['kind']
  readonly producer?: Producer
}

/**
 * The first chunk at which a check fails, among those that changed the files: O(log states) checks, each in a scratch folder with the files
 * of that time. Merges are one step; when one is found, the sides are searched. Nothing is run but what `check` runs.
 */
export async function bisect(
  session: Session,
  check: BisectCheck,
  options: BisectOptions = {},
): Promise<Bisection> {
  if (typeof check !== 'function')
    throw new RathError(
      'invalid-argument',
      `bisect takes a function that checks a folder, not ${show(check)}.`,
    )
  const { store, workspaces } = options
  await bringFiles(session, store, workspaces)
  const objects = await openKeptFiles(workspaces)
  try {
    const { last } = await fileHistory(session, store && sessionsIn(store, workspaces))
    if (last === undefined) {
      throw new RathError(
        'path-missing',
        'This session has no files: none of its tool calls recorded a workspace, so there is nothing to check out.',
      )
    }
    return await new Bisecting(check, objects, options).from(last)
  } finally {
    objects.close()
  }
}

class Bisecting {
  readonly #check: BisectCheck
  readonly #objects: ObjectStore
  readonly #options: BisectOptions
  readonly #answers = new Map<Digest, Answer>()
  readonly #probes: Probe[] = []
  readonly #numbers = new Map<FileState, number>()

  constructor(check: BisectCheck, objects: ObjectStore, options: BisectOptions) {
    this.#check = check
    this.#objects = objects
    this.#options = options
  }

  async from(last: FileState): Promise<Bisection> {
    const line = lineTo(last)
    for (const [i, state] of line.entries()) this.#numbers.set(state, i)
    const { every = false } = this.#options
    const found = await firstFailing(line, state => this.#ask(state), { every, known: this.#known })
    const report = { probes: this.#probes, states: line.length, changes: found.changes }
    const others = found.others.map(this.#describe)
    if (found.result !== 'found' && found.result !== 'suspects')
      return { ...report, result: found.result, suspects: [], others }
    const guilty = found.first === undefined ? found.suspects : await this.#insideMerge(found.first)
    const [first, ...more] = guilty.map(this.#describe)
    if (first && more.length === 0) return { ...report, result: 'found', first, suspects: [], others }
    return { ...report, result: 'suspects', suspects: first ? [first, ...more] : [], others }
  }

  /** When a merge is to blame, what broke it on the side that brought it; the merge itself when every side passes. */
  async #insideMerge(state: FileState): Promise<readonly FileState[]> {
    if (state.cause.kind !== 'merge') return [state]
    const suspects: FileState[] = []
    for (const side of state.parents.slice(1)) {
      const line = lineTo(side)
      for (const one of line) if (!this.#numbers.has(one)) this.#numbers.set(one, this.#numbers.size)
      const found = await firstFailing(line, one => this.#ask(one), { every: false, known: this.#known })
      if (found.result === 'found') return this.#insideMerge(found.first as FileState)
      if (found.result === 'suspects') suspects.push(...found.suspects)
    }
    return [...suspects, state]
  }

  readonly #known = (state: FileState): Answer | undefined => this.#answers.get(state.tree)

  async #ask(state: FileState): Promise<Answer> {
    const known = this.#known(state)
    if (known !== undefined) return known
    const { signal, scratch = tmpdir(), onCheck } = this.#options
    checkKept(this.#objects, state.tree)
    const folder = await mkdtemp(join(scratch, 'openrath-bisect-'))
    try {
      const { notRestored } = await restoreFolder(
        folder,
        undefined,
        state.tree,
        this.#objects,
        new Breath(signal),
      )
      const { tree, producer, state: number, cause } = this.#describe(state)
      const at = { tree, ...(producer && { producer }), ...(signal && { signal }) }
      const answer = asAnswer(await this.#check(folder, at))
      if (signal?.aborted) throw cancelledError(signal)
      this.#answers.set(tree, answer)
      const probe = { state: number, tree, cause, answer, notRestored, ...(producer && { producer }) }
      this.#probes.push(probe)
      onCheck?.(probe)
      return answer
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  readonly #describe = (state: FileState): FirstFailing => {
    const { tree, cause } = state
    const number = this.#numbers.get(state) as number
    if (cause.kind === 'start') return { state: number, tree, cause: cause.kind }
    return { state: number, tree, cause: cause.kind, producer: producerOf(cause.chunk, cause.lines) }
  }
}

/** The states that led to one, oldest first; a merge counts as what its first side became. */
function lineTo(last: FileState): FileState[] {
  const line: FileState[] = []
  for (let state: FileState | undefined = last; state; state = state.parents[0]) line.push(state)
  return line.reverse()
}

function asAnswer(answer: unknown): Answer {
  if (answer === true || answer === 'pass') return 'pass'
  if (answer === false || answer === 'fail') return 'fail'
  if (answer === 'skip') return 'skip'
  throw new RathError(
    'invalid-argument',
    `A check answers 'pass', 'fail', 'skip', true or false, not ${show(answer)}.`,
  )
}

export function printProbe({ state, answer, cause, producer, notRestored }: Probe): string {
  const missing = notRestored.length > 0 ? ` (${notRestored.length} files were never kept)` : ''
  return `${answer.padEnd(4)} state ${state}: ${described({ cause, producer })}${missing}`
}

export function printBisection(bisection: Bisection): string {
  const { result, first, suspects, states, probes } = bisection
  const cost = `${probes.length} of ${states} states checked`
  switch (result) {
    case 'passes':
      return `The check passes on the files as the session left them; ${cost}.${note(bisection)}`
    case 'fails-from-start':
      return `The check fails on the files as they were before the session; ${cost}.${note(bisection)}`
    case 'suspects':
      return [
        `It begins to fail in one of these, which could not be told apart; ${cost}.${note(bisection)}`,
        ...suspects.map(suspect => `  ${described(suspect)}`),
      ].join('\n')
    case 'found':
      return `First fails: ${described(first as FirstFailing)}; ${cost}.${note(bisection)}`
  }
}

function note({ changes, others }: Bisection): string {
  if (changes === 'several') return ` It broke more than once: also ${others.map(described).join(', ')}.`
  if (changes === 'assumed')
    return ' States in between were not checked: if it was mended and broken again, there are others.'
  return ''
}

function described({
  cause,
  producer,
}: Pick<FirstFailing, 'cause'> & { producer?: FirstFailing['producer'] | undefined }): string {
  if (producer === undefined) return 'the files before the session'
  const { index, by, tool, branch, chunk } = producer
  const where = `chunk ${index} ${chunk.slice(0, 12)}${branch ? ` on ${oneLine(branch)}` : ''}`
  if (cause === 'drift') return `a change by a person or another program, seen at ${where}`
  if (cause === 'merge') return `the merge at ${where}`
  return `${where}, ${oneLine([tool, by && `by ${by}`].filter(Boolean).join(' '))}`
}
