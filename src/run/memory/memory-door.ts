import { type JsonObject, toJson } from '../../base/json.ts'
import type { Session } from '../../session/session.ts'
import type { Effect } from '../../tool/spec.ts'
import type { RunContext } from '../context.ts'
import { errorOf, failureOf } from '../door.ts'
import { scopeIn } from '../scope.ts'

/**
 * An operation of a memory through the door: done once, and taken from the record afterwards. Outside every call it is simply done. `work` gets a
 * key that is the same when it is done again after a crash.
 */
export async function passMemory<T>(
  context: RunContext | undefined,
  session: Session | undefined,
  request: JsonObject,
  rule: Effect,
  work: (key: string | undefined) => Promise<T>,
): Promise<T> {
  if (context === undefined) return work(undefined)
  let cause: unknown
  const passed = await context.run.door.pass(
    {
      kind: 'memory',
      session: session ?? (context.input as Session),
      request,
      sample: scopeIn(context).sample,
      rule,
      by: context.by,
      urgent: rule !== 'read',
    },
    async ({ key, occurrence }) => {
      try {
        return { value: toJson(await work(`effect/${key}/${occurrence}`), 'what the memory returned') }
      } catch (error) {
        if (context.aborted) throw error
        cause = error
        return { error: failureOf(error) }
      }
    },
  )
  if (passed.error !== undefined) throw cause ?? errorOf(passed.error)
  return passed.value as T
}
