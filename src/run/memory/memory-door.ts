import { untilAbort } from '../../base/abort.ts'
import { type JsonObject, toJson } from '../../base/json.ts'
import type { Session } from '../../session/session.ts'
import type { Effect } from '../../tool/spec.ts'
import type { RunContext } from '../context.ts'
import { effect, valueIn } from '../effect.ts'
import { askedIn } from '../entry.ts'

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
  const asked = session ?? (context.input as Session)
  const { signal } = context
  const passed = await effect(
    context,
    {
      kind: 'memory',
      session: asked,
      request,
      rule,
      facts,
      urgent: rule !== 'read',
      keepsFailure: true,
      trace: (tracing, at, work) => tracing.memory(request, asked, context, at, work),
    },
    async at => {
      const key = `effect/${context.runId}/${at.key}/${at.occurrence}`
      const begun = at.begun && askedIn(at.begun).facts
      const done = await untilAbort(work(key, signal, begun ?? facts), signal)
      return { value: toJson(done, 'what the memory returned') }
    },
  )
  return valueIn(passed) as T
}
