import { RathError } from '../base/errors.ts'
import { type RetryOptions, withRetry } from '../model/retry.ts'
import type { Model, ModelAnswer, ModelRequest } from '../model/spec.ts'
import type { ChunkInput } from '../session/chunk.ts'
import { emit, type RunContext } from './context.ts'
import { Deadline } from './deadline.ts'

/** The budget ended while the model was answering, or between two answers of one piece of work. The message says what is used up. */
export class BudgetSpent extends Error {}

export interface Asked {
  readonly answer: ModelAnswer
  /** Attempts that failed before it, as evidence. */
  readonly failures: readonly ChunkInput[]
}

/**
 * One answer, with retries. Failed attempts are returned for the record beside the answer, or stand on the error (`failures`) when
 * there was none.
 */
export async function ask(
  model: Model,
  request: ModelRequest,
  retry: RetryOptions,
  context: RunContext,
): Promise<Asked> {
  const failures: ChunkInput[] = []
  using deadline = new Deadline(context)
  try {
    const answer = await withRetry(attempt(model, request, context, deadline.signal), retry, {
      signal: deadline.signal,
      onRetry(error, number, waitMs) {
        failures.push(failedAttempt(error, number))
        emit(context, { type: 'retry', attempt: number, waitMs, error: error.code, message: error.message })
      },
    })
    return { answer, failures }
  } catch (error) {
    if (deadline.passed) throw new BudgetSpent('the time is over')
    throw new AskFailed(error, failures)
  }
}

/** No answer came: why, and every attempt as a chunk. */
export class AskFailed extends Error {
  readonly chunks: readonly ChunkInput[]

  constructor(cause: unknown, before: readonly ChunkInput[]) {
    super('the model did not answer', { cause })
    this.chunks = [...before, failedAttempt(cause, before.length + 1)]
  }
}

function attempt(model: Model, request: ModelRequest, context: RunContext, signal: AbortSignal) {
  return async (): Promise<ModelAnswer> => {
    context.budget.addRound()
    // Deltas are made only when somebody follows; a model may then answer in one piece.
    const onDelta = context.events.observed
      ? (delta: Parameters<NonNullable<Delta>>[0]) => emit(context, delta)
      : undefined
    const answer = await model.answer(request, { signal, onDelta })
    if (answer.usage) context.budget.addUsage(answer.usage)
    return answer
  }
}

type Delta = Parameters<Model['answer']>[1]['onDelta']

function failedAttempt(error: unknown, attempt: number): ChunkInput {
  const known = error instanceof RathError ? error : undefined
  return {
    kind: 'error',
    error: known?.code ?? 'run-failed',
    message: error instanceof Error ? error.message : String(error),
    attempt,
    ...(known && { retry: known.retry }),
  }
}
