import { untilAbort } from '../../base/abort.ts'
import { type JsonObject, toJson } from '../../base/json.ts'
import type { Session } from '../../session/session.ts'
import type { Effect } from '../../tool/spec.ts'
import type { RunContext } from '../context.ts'
import { errorOf, failureOf } from '../effect.ts'
import { askedIn, type Outcome } from '../entry.ts'
import { scopeIn } from '../scope.ts'
import { underWay } from '../under-way.ts'

/**
 * An operation of a memory through the door: done once, and taken from the record afterwards. Outside every call it is simply done. `work` gets a
 * key that is the same when it is done again after a crash, and the facts that it was first begun with. A memory that does not listen to the
 * signal is left behind when the call is cancelled.
 */
export async function passMemory<T>(
  context: RunContext | undefined,
  session: Session | undefined,
  request: JsonObject,
  rule: Effect,
  work: (
    key: string | undefined,
    signal: AbortSignal | undefined,
    facts: JsonObject | undefined,
  ) => Promise<T>,
  facts?: JsonObject,
): Promise<T> {
  if (context === undefined) return work(undefined, undefined, facts)
  const { tracing } = context.runtime
  const asked = session ?? (context.input as Session)
  let cause: unknown
  const passed = await underWay(context, () =>
    context.run.door.pass(
      {
        kind: 'memory',
        session: asked,
        request,
        sample: scopeIn(context).sample,
        rule,
        by: context.by,
        facts,
        urgent: rule !== 'read',
      },
      async at => {
        const perform = async (): Promise<Outcome> => {
          try {
            const { signal } = context
            const key = `effect/${context.runId}/${at.key}/${at.occurrence}`
            const begun = at.begun && askedIn(at.begun).facts
            const done = await untilAbort(work(key, signal, begun ?? facts), signal)
            return { value: toJson(done, 'what the memory returned') }
          } catch (error) {
            if (context.aborted) throw error
            cause = error
            return { error: failureOf(error) }
          }
        }
        return tracing ? tracing.memory(request, asked, context, at, perform) : perform()
      },
    ),
  )
  if (passed.isRecorded) tracing?.recorded()
  if (passed.error !== undefined) throw cause ?? errorOf(passed.error)
  return passed.value as T
}
