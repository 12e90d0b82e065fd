import type { RathError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ModelRequest } from '../../model/spec.ts'
import type { Session } from '../../session/session.ts'
import type { PreparedCall } from '../../tool/prepare.ts'
import type { Outcome } from '../entry.ts'
import type { RunEnd } from '../event.ts'

/**
 * Follows what runs do, for those who watch from outside. A runtime has one when telemetry was asked for and an SDK is there, and none otherwise. Whatever is
 * taken from a record was not done: it is counted, and has no span.
 */
export interface Tracing {
  /** A call begins: its input is there. */
  call(callee: TracedCallee, input: Session, caller: Caller): CallTrace
  model<T extends Outcome<'model'>>(
    question: TracedQuestion,
    caller: Caller,
    at: EffectKey,
    work: () => Promise<T>,
  ): Promise<T>
  tool<T extends Outcome<'tool'>>(
    call: PreparedCall,
    session: Session,
    caller: Caller,
    at: EffectKey,
    work: () => Promise<T>,
  ): Promise<T>
  memory<T extends Outcome<'memory'>>(
    request: JsonObject,
    session: Session,
    caller: Caller,
    at: EffectKey,
    work: () => Promise<T>,
  ): Promise<T>
  /** An attempt of what is being done failed, and another follows. */
  retry(error: RathError, attempt: number, waitMs: number): void
  /** The outcome of an effect was on record. */
  recorded(): void
}

/** A call under way. */
export interface CallTrace {
  /** What is done in here belongs to the call. */
  run<T>(work: () => T): T
  /** `made` is what its forward returned, `result` the same under the id that was promised. */
  done(result: Session, made: Session): void
  failed(error: RathError, status: RunEnd): void
}

/** Who does it, and for which session: a run's context is one. */
export interface Caller {
  readonly runId: string
  readonly by: string
  readonly out: { readonly id: string }
}

export interface TracedCallee {
  readonly operation: string
  /** Set when it is an agent; looked at only here. */
  readonly agent?: AgentFacts | undefined
}

export interface AgentFacts {
  readonly model?: string | undefined
  readonly description?: string | undefined
}

export interface TracedQuestion {
  readonly model: { readonly id: string }
  readonly session: Session
  readonly about: Pick<ModelRequest, 'settings'> & { readonly output?: ModelRequest['output'] | undefined }
  request(): ModelRequest
}

/** How the journal knows an effect. */
export interface EffectKey {
  readonly key: string
  readonly occurrence: number
}
