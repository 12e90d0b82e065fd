import { type Callee, call, type SessionInput } from '../run/call.ts'
import type { CallOptions } from '../run/context.ts'
import type { PendingSession } from '../run/pending-session.ts'
import type { Session } from '../session/session.ts'

/** Calling an instance runs its `forward`, with hooks, run context and events around it. Merges with the class below. */
export interface Workflow {
  (session: SessionInput, options?: CallOptions): PendingSession
}

/**
 * A layer over sessions. Subclasses write `forward` and hold their parts in fields; instances are called like functions.
 *
 * ```ts
 * class Review extends Workflow {
 *   writer = new Agent('Write a draft.', { model })
 *   critic = new Agent('Criticise it.', { model })
 *   forward(session: Session) { return this.critic(this.writer(session)) }
 * }
 * const out = await new Review()(Session.fromUserMessage('…'))
 * ```
 */
export abstract class Workflow {
  /** What it is for, in words that a Selector can choose by. */
  declare description: string
  /** Its part of the producer path: the class's name, unless it has one of its own. */
  declare readonly name: string

  constructor() {
    // The instance is a function with this class's prototype: field initialisers of subclasses run on it as on any object.
    const instance = ((session: SessionInput, options?: CallOptions) =>
      call(calleeOf(instance), session, options)) as unknown as Workflow
    Object.setPrototypeOf(instance, new.target.prototype)
    // A function's own name and length would shadow what the class says about itself.
    Reflect.deleteProperty(instance, 'length')
    Object.defineProperty(instance, 'name', { value: new.target.name, configurable: true, writable: true })
    instance.description = ''
    return instance
  }

  /** What every call of it gets, besides what the caller says. */
  get callOptions(): CallOptions {
    return {}
  }

  abstract forward(session: Session): Session | Promise<Session>

  toString(): string {
    return `${this.constructor.name}()`
  }

  get [Symbol.toStringTag](): string {
    return this.constructor.name
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }
}

function calleeOf(workflow: Workflow): Callee {
  return {
    name: workflow.name,
    operation: workflow.constructor.name,
    options: workflow.callOptions,
    forward: session => workflow.forward(session),
  }
}
