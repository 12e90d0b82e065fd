import { canonicalJson, isJson, isPlainObject, type Json } from '../../base/json.ts'

/**
 * What a policy has to look at: the arguments as they were written, and as they will run where the tool's schema makes others of them
 * (defaults filled in, text trimmed). A rule that sees only one of the two can be walked around.
 */
export function seenArguments(written: Json, parsed: unknown): readonly Json[] {
  if (parsed === written) return [written]
  const made = over(written, parsed, 0)
  return canonicalJson(made) === canonicalJson(written) ? [written] : [written, made]
}

/** What a schema passed on is not looked for deeper than this. */
const maximumDepth = 64

/** `made` where that is JSON, else what was written in its place. */
function over(written: Json | undefined, made: unknown, depth: number): Json {
  if (depth > maximumDepth) return written ?? null
  if (Array.isArray(made)) return made.map((member, i) => over(memberOf(written, i), member, depth + 1))
  if (!isPlainObject(made)) return isJson(made) ? made : (written ?? null)
  const both = Object.assign(Object.create(null), isPlainObject(written) ? written : {})
  for (const key of Object.keys(made)) {
    if (made[key] !== undefined) both[key] = over(memberOf(written, key), made[key], depth + 1)
  }
  return both
}

function memberOf(written: Json | undefined, key: string | number): Json | undefined {
  const holds = typeof written === 'object' && written !== null && Object.hasOwn(written, key)
  return holds ? (written as Record<string | number, Json>)[key] : undefined
}
