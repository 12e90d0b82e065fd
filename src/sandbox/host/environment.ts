import { realpathSync } from 'node:fs'
import { delimiter, isAbsolute, join, relative } from 'node:path'

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

/**
 * The folders of a PATH that a file tool cannot write to: absolute, outside these folders and what they are links to, and no `node_modules`,
 * which `npm start` puts in front.
 */
export function pathOutside(path: string, folders: readonly string[]): string {
  const within = folders.flatMap(folder => [folder, realOf(folder)])
  const isOutside = (entry: string) =>
    isAbsolute(entry) &&
    !entry.split(/[\\/]/).includes('node_modules') &&
    !within.some(folder => holds(folder, entry))
  return path
    .split(delimiter)
    .filter(entry => isOutside(entry) && isOutside(realOf(entry)))
    .join(delimiter)
}

function holds(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way === '' || !(way === '..' || way.startsWith(join('..', '/')) || isAbsolute(way))
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
