import { isPlainObject, type Json } from '../../base/json.ts'

/** How a value is recognised: a glob or equal value, a regular expression over its text, or a function. */
export type Match = string | number | boolean | null | RegExp | ((value: Json) => boolean)

/** A glob with `*` (any run of characters) and `?` (one), over the whole text. */
export function matchesGlob(pattern: string, text: string): boolean {
  if (!/[*?]/.test(pattern)) return pattern === text
  // Two fingers that go back to the last star: linear in practice, and no regular expression to blow up.
  let star = -1
  let resume = 0
  let p = 0
  let t = 0
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++
      resume = t
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++
      t++
    } else if (star >= 0) {
      p = star + 1
      t = ++resume
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}

export function matchesAny(patterns: string | readonly string[], text: string): boolean {
  return typeof patterns === 'string'
    ? matchesGlob(patterns, text)
    : patterns.some(pattern => matchesGlob(pattern, text))
}

export function matchesValue(match: Match, value: Json): boolean {
  if (typeof match === 'function') return match(value) === true
  if (match instanceof RegExp) {
    // A fresh one: a `g` or `y` flag would make the answer depend on the call before.
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return new RegExp(match.source, match.flags.replace(/[gy]/g, '')).test(text)
  }
  return typeof match === 'string' && typeof value === 'string' ? matchesGlob(match, value) : match === value
}

/** The values at `a.b`, `list[0]` or `list[*].name` in arguments; none when nothing is there. */
export function valuesAt(args: Json, path: string): Json[] {
  let found: Json[] = [args]
  for (const [, key, index] of path.matchAll(/([^.[\]]+)|\[(\d+|\*)\]/g)) {
    const segment = key ?? (index as string)
    found = found.flatMap(value => {
      if (segment === '*') return Array.isArray(value) || isPlainObject(value) ? Object.values(value) : []
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return []
      return [(value as Record<string, Json>)[segment] as Json]
    })
  }
  return found
}
