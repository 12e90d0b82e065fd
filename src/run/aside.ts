import type { Model, ModelAnswer } from '../model/spec.ts'
import type { Session } from '../session/session.ts'
import { AskFailed, ask, BudgetSpent, type Question } from './ask.ts'
import type { RunContext } from './context.ts'
import { ownError } from './own-error.ts'
import { Recorder } from './recorder.ts'

/**
 * One question that is no turn of the conversation: which way to go, what to keep of the history. Attempts that failed are on
 * the record; the answer is for the caller to put there.
 */
export async function askAside(
  question: Omit<Question, 'session'>,
  recorder: Recorder,
  context: RunContext,
): Promise<ModelAnswer> {
  try {
    const { answer, failures } = await ask({ ...question, session: recorder.session }, context)
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

/** Does work that records, and returns the session it made; an error carries that session as far as it came. */
export async function recorded(
  input: Session,
  context: RunContext,
  work: (recorder: Recorder) => Promise<void>,
): Promise<Session> {
  const recorder = await Recorder.on(input, context)
  try {
    await work(recorder)
  } catch (thrown) {
    throw Object.assign(ownError(thrown, context.run), { session: recorder.session })
  }
  return recorder.session
}

/** A model that is asked without anybody reading along: its words are no part of the answer that a listener waits for. */
export function quiet(model: Model): Model {
  const { id, priced, wraps = model } = model
  return { id, priced, wraps, answer: (request, { signal, run }) => model.answer(request, { signal, run }) }
}
