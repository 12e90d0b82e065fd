/** What commands get from this process. Everything else may be a key. */
const harmless = new Set(['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'TERM', 'USER', 'SHELL'])

export type Environment = Readonly<Record<string, string | undefined>>

/** A clean environment: the harmless names and `LC_*`, the names asked for, and the values given. */
export function cleanEnvironment(
  host: Environment,
  passed: readonly string[],
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(host)) {
    const isFine = harmless.has(name) || name.startsWith('LC_') || passed.includes(name)
    if (isFine && value !== undefined) clean[name] = value
  }
  return Object.assign(clean, given)
}
