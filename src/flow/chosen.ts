import { call, type SessionInput } from '../run/call.ts'
import type { CallOptions } from '../run/context.ts'
import { PendingSession } from '../run/pending-session.ts'
import type { Chunk } from '../session/chunk.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import { appendCopy } from '../session/value.ts'
import type { Workflow } from './workflow.ts'

/** A choice that was made: about which session, and that session with the choice on its record. */
export interface Decided {
  readonly asked: string
  readonly session: Session
  readonly route: Chunk<'route'>
  readonly by: string
}

/**
 * A chosen workflow, the same in everything but this: calling it puts the choice on the record first. It is a view of the workflow
 * and not the object itself, so that neither the workflow nor another choice of it learns of this one.
 */
export function chosen(workflow: Workflow, decided: Decided): Workflow {
  return new Proxy(workflow, {
    apply: (target, _, [input, options]: [SessionInput, CallOptions?]): PendingSession =>
      target(routedInput(input, decided), options),
    // Getters and methods run on the workflow itself: private fields are not on the view.
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      const isMethod = typeof value === 'function' && key !== 'constructor' && !Object.hasOwn(target, key)
      return isMethod ? value.bind(target) : value
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  })
}

function routedInput(input: SessionInput, decided: Decided): SessionInput {
  if (input instanceof Session) return routed(input, decided)
  // What is still being made gets the choice when it is there. Anything else is refused by the workflow in its own words.
  if (!(input instanceof PendingSession)) return input
  const { by } = decided
  return call({ name: by, operation: by, forward: session => routed(session, decided) }, input)
}

function routed(input: Session, { asked, session, route }: Decided): Session {
  if (input.id === asked) return session
  if (input.chunks.at(route.index)?.id === route.id) return input
  return sessionOf(appendCopy(valueFrom(input), route))
}
