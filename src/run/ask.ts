import { untilAbort } from '../base/abort.ts'
import { now } from '../base/clock.ts'
import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import { asJson, canonicalJsonOfOrdered, toJson } from '../base/json.ts'
import { Patience, type RetryOptions, withRetry } from '../model/retry.ts'
import type { FallbackModel, Model, ModelAnswer, ModelDelta, ModelRequest } from '../model/spec.ts'
import type { ChunkInput } from '../session/chunk.ts'
import { type AnswerPart, unnamed } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'
import { readToolResult } from '../tool/big-output.ts'
import type { Tool } from '../tool/spec.ts'
import { Deadline, unknownPrice } from './budget.ts'
import { emit, type RunContext } from './context.ts'
import { type Ended, effect, errorOf, failureOf } from './effect.ts'
import { cleanDigest, type Failure, type ModelAnswered, type ModelAsked, type Outcome } from './entry.ts'
import { spendInside } from './frame.ts'
import type { Recorder } from './recorder.ts'

/** The budget ended while the model was answering, or between two answers of one piece of work. The message says what is used up. */
export class BudgetSpent extends Error {
  /** Attempts that failed before it ended, as evidence. */
  readonly chunks: readonly ChunkInput[]

  constructor(spent: string, chunks: readonly ChunkInput[] = []) {
    super(spent)
    this.chunks = chunks
  }
}

/** A question to a model. */
export interface Question {
  readonly model: Model
  readonly retry: RetryOptions
  /** What it is asked from, and where that is kept. */
  readonly session: Session
  readonly store: Store
  /** What the answer depends on besides the session. */
  readonly about: About
  /** Made only when the model is asked. */
  request(): ModelRequest
}

/** A request to one model without the conversation, which the state of the session covers. It stays as it is. */
export interface About {
  /** Digest of the agent's instructions, which the store keeps. */
  readonly prompt?: Digest | undefined
  /** The same as text, where the store does not. */
  readonly instruction?: string
  /** What is said behind the conversation. */
  readonly question?: string
  /** Digest of what is said instead of it. */
  readonly text?: Digest
  readonly tools?: Tools | undefined
  readonly toolChoice?: ModelRequest['toolChoice']
  readonly output?: ModelRequest['output']
  readonly settings: ModelRequest['settings']
}

/** Tool descriptions, and their digest. */
export interface Tools {
  readonly digest: Digest
  readonly descriptions: ModelRequest['tools']
}

export interface Answered extends ModelAnswered {
  /** When it was there, in milliseconds since the epoch. */
  readonly at?: number
}

/** One answer, with retries. Failed attempts are returned for the record beside the answer, or stand on the error (`chunks`) when there was none. */
export async function ask(question: Question, context: RunContext): Promise<Answered> {
  const { model, session, about } = question
  const { tools } = about
  if (tools) context.run.door.define(tools.digest, () => asJson(tools.descriptions))
  const { request, text } = requests.get(about) ?? requestOf(model, about, question.store)
  const passed = await effect(
    context,
    {
      kind: 'model',
      session,
      request,
      text,
      rule: 'read',
      trace: (tracing, at, work) => tracing.model(question, context, at, work),
    },
    () => answerOf(question, context),
  )
  const { value, error, at } = passed
  if (passed.isRecorded) {
    const answered = model.fallbacks?.find(({ id }) => id === value?.answer.model) ?? model
    context.run.serve(answered.wraps ?? answered, value)
    spend(passed, context)
  }
  if (value !== undefined) {
    spendInside(value.answer.usage)
    return at === undefined ? value : { ...value, at }
  }
  if (error.spent !== undefined) throw new BudgetSpent(error.spent, error.failures)
  throw new AskFailed(passed.cause ?? errorOf(error as Failure), error.failures)
}

/** No answer came: why, and every attempt as a chunk. */
export class AskFailed extends Error {
  readonly chunks: readonly ChunkInput[]

  constructor(cause: unknown, before: readonly ChunkInput[]) {
    super('the model did not answer', { cause })
    this.chunks = [...before, failedAttempt(cause, before.length + 1)]
  }
}

async function answerOf(
  { model, retry, request, store }: Question,
  context: RunContext,
): Promise<Ended<'model'>> {
  if (!model.fallbacks) checkPrice(model, context)
  const failures: ChunkInput[] = []
  using deadline = new Deadline(context)
  let rounds = 0
  try {
    const given = request()
    const failed = (error: RathError, waitMs: number) => {
      const number = failures.length + 1
      failures.push(failedAttempt(error, number))
      refuseSpent(context)
      context.runtime.tracing?.retry(error, number, waitMs)
      const message = store.clean(error.message)
      emit(context, { type: 'retry', attempt: number, waitMs, error: error.code, message })
    }
    const answerFrom = async (one: FallbackModel): Promise<ModelAnswer> => {
      checkPrice(one, context)
      const patience = one === model ? retry : (one.retry ?? retry)
      const asked = one === model ? given : { ...given, settings: one.settings ?? {} }
      const task = () => {
        refuseSpent(context)
        rounds++
        return attempt(one, asked, patience, context, store, deadline.signal)
      }
      return withRetry(task, patience, {
        signal: deadline.signal,
        onRetry: (error, _, waitMs) => failed(error, waitMs),
      })
    }
    const { fallbacks } = model
    if (!fallbacks) return { value: { answer: await answerFrom(model), failures } }
    const models: readonly FallbackModel[] = [model, ...fallbacks]
    for (const one of models) {
      try {
        const answer = await answerFrom(one)
        return { value: { answer: { ...answer, model: answer.model ?? one.wraps?.id ?? one.id }, failures } }
      } catch (error) {
        if (one === models.at(-1) || deadline.signal.aborted || !goesElsewhere(error)) throw error
        failed(error, 0)
      }
    }
    throw new Error('unreachable')
  } catch (error) {
    const spent = deadline.passed ? 'the time is over' : error instanceof BudgetSpent && error.message
    if (spent) return { error: { spent, failures, rounds } }
    if (context.aborted) throw error
    return { error: { ...failureOf(error), failures }, cause: error }
  }
}

function checkPrice({ id, priced }: Model, { budget }: RunContext): void {
  if (budget.needsPrices && priced !== true) throw unknownPrice(id)
}

/** Whether another model may answer what this one did not. */
function goesElsewhere(error: unknown): error is RathError {
  if (!(error instanceof RathError)) return false
  const { code } = error
  return (
    code.startsWith('model-') ||
    code === 'unknown-model' ||
    code === 'unknown-price' ||
    code.startsWith('credentials-') ||
    code === 'missing-package'
  )
}

/** Branches share a budget: others may have used it up since it was last looked at. */
function refuseSpent({ budget }: RunContext): void {
  const { spent } = budget
  if (spent !== undefined) throw new BudgetSpent(spent)
}

async function attempt(
  model: Model,
  request: ModelRequest,
  { timeout = {} }: RetryOptions,
  context: RunContext,
  store: Store,
  outer: AbortSignal,
): Promise<ModelAnswer> {
  const { run, budget, events } = context
  budget.addRound()
  // Deltas are made only when somebody follows; a model may then answer in one piece.
  const deltas = events.observed
    ? new DeltaCleaner(store, delta => {
        if (!outer.aborted) emit(context, delta)
      })
    : undefined
  using patience = new Patience(model.id, timeout, deltas !== undefined, outer)
  const { signal } = patience
  const onDelta =
    deltas &&
    ((delta: ModelDelta) => {
      patience.heard()
      deltas.add(delta)
    })
  const about = { id: run.id, recorded: () => run.servedFor(model.wraps ?? model, model.id) }
  const answering = untilAbort(model.answer(request, { signal, onDelta, run: about }), signal)
  const answer = withNames(
    await answering.catch(error => {
      throw patience.error ?? error
    }),
  )
  deltas?.end()
  if (answer.usage) budget.addUsage(answer.usage)
  return answer
}

/** A call without a name cannot be recorded, and must not be lost: it gets one that no tool has, and so an error that the model can read. */
function withNames(answer: ModelAnswer): ModelAnswer {
  const isNameless = (part: AnswerPart) => part.type === 'tool-call' && (part.name ?? '') === ''
  if (!answer.content.some(isNameless)) return answer
  return {
    ...answer,
    content: answer.content.map(part =>
      isNameless(part) ? ({ ...part, name: unnamed } as AnswerPart) : part,
    ),
  }
}

/** What is on record counts: a budget ends a run at the same point whenever it is run. */
function spend({ value, error }: Outcome<'model'>, { budget }: RunContext): void {
  const { failures } = value ?? error
  const rounds = error?.rounds ?? failures.length + 1
  for (let n = 0; n < rounds; n++) budget.addRound()
  if (value?.answer.usage) budget.addUsage(value.answer.usage)
}

/** What was made of each of them: an agent asks about the same round after round. */
const requests = new WeakMap<About, Written>()

interface Written {
  readonly request: ModelAsked
  readonly text: string
}

function requestOf(model: Model, about: About, store: Store): Written {
  const { tools, output, ...rest } = about
  const given = {
    model: model.id,
    ...rest,
    ...(tools && { tools: tools.digest }),
    ...(output && { output: { name: output.name, schema: cleanDigest(output.schema, store) } }),
  }
  const request = toJson(given, 'request') as ModelAsked
  const made = { request, text: canonicalJsonOfOrdered(request) }
  requests.set(about, made)
  return made
}

function failedAttempt(error: unknown, attempt: number): ChunkInput {
  const known = error instanceof RathError ? error : undefined
  return {
    kind: 'error',
    at: now(),
    error: known?.code ?? 'run-failed',
    message: error instanceof Error ? error.message : String(error),
    attempt,
    ...(known && { retry: known.retry }),
  }
}

/**
 * Takes secrets out of an answer while it comes. A secret may come in pieces, so the end of what has come is held back for as long as it may
 * be the beginning of one; `end` gives what is left.
 */
class DeltaCleaner {
  readonly #store: Store
  readonly #emit: (delta: ModelDelta) => void
  /** A delta whose text may go on in the next one. */
  #held: ModelDelta | undefined

  constructor(store: Store, emit: (delta: ModelDelta) => void) {
    this.#store = store
    this.#emit = emit
  }

  add(delta: ModelDelta): void {
    if (this.#held && !isContinued(this.#held, delta)) this.end()
    const text = (this.#held?.text ?? '') + delta.text
    this.#held = undefined
    const back = this.#store.unfinished?.(text) ?? 0
    if (back > 0) this.#held = { ...delta, text: text.slice(text.length - back) }
    const clean = this.#store.clean(back > 0 ? text.slice(0, text.length - back) : text)
    if (clean !== '') this.#emit(clean === delta.text ? delta : { ...delta, text: clean })
  }

  end(): void {
    const held = this.#held
    this.#held = undefined
    if (held) this.#emit({ ...held, text: this.#store.clean(held.text) })
  }
}

function isContinued(held: ModelDelta, next: ModelDelta): boolean {
  return (
    held.type === next.type &&
    (held.type !== 'tool-input-delta' || held.callId === (next as typeof held).callId)
  )
}

/**
 * One question that is no turn of the conversation: which way to go, what to keep of the history. Attempts that failed are on
 * the record; the answer is for the caller to put there.
 */
export async function askAside(
  question: Omit<Question, 'session' | 'store'>,
  recorder: Recorder,
  context: RunContext,
): Promise<ModelAnswer> {
  try {
    const { answer, failures } = await ask(
      { ...question, session: recorder.session, store: recorder.store },
      context,
    )
    recorder.add(...failures)
    return answer
  } catch (error) {
    if (error instanceof BudgetSpent) {
      recorder.add(...error.chunks)
      throw new BudgetSpent(error.message)
    }
    if (!(error instanceof AskFailed)) throw error
    if (!context.signal.aborted) await recorder.record(...error.chunks)
    throw error.cause
  }
}

/** A model that is asked without anybody reading along: its words are no part of the answer that a listener waits for. */
export function quiet(model: Model): Model {
  const { id, priced, wraps = model, fallbacks } = model
  return {
    id,
    priced,
    wraps,
    ...(fallbacks && {
      fallbacks: fallbacks.map(one => ({ ...quiet(one), settings: one.settings, retry: one.retry })),
    }),
    answer: (request, { signal, run }) => model.answer(request, { signal, run }),
  }
}

/** A long result is shown to the model head and tail; with this tool it reads the rest. */
export function withReader(tools: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
  return tools.size === 0 || tools.has(readToolResult.name)
    ? tools
    : new Map([...tools, [readToolResult.name, readToolResult]])
}

const described = new WeakMap<ReadonlyMap<string, Tool>, Tools['descriptions']>()

/** What the model is told of the tools; made once for each table of an agent. */
export function describe(
  own: ReadonlyMap<string, Tool>,
  all: ReadonlyMap<string, Tool>,
  store: Store,
): Tools | undefined {
  if (all.size === 0) return undefined
  let descriptions = described.get(own)
  if (descriptions === undefined) {
    descriptions = [...all.values()].map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
    described.set(own, descriptions)
  }
  return { digest: cleanDigest(descriptions, store), descriptions }
}
