import { isAbsolute, join, parse, sep } from 'node:path'

/** What is asked of a file system to know where a path really leads. Rejects with `code: 'ENOENT'` for what is not there. */
export interface PathFiles {
  /** The workspace: what relative paths and roots start from. An absolute path. */
  readonly folder: string
  realpath(path: string): Promise<string>
  readlink(path: string): Promise<string>
}

/** The files of the session's workspace, looked for only when a rule needs them; undefined where nobody can look into them. */
export type AskFiles = () => Promise<PathFiles | undefined>

/** As long as a path of Linux may be. */
const longestPath = 4096
/** As many links as Linux follows before it gives up. */
const mostLinks = 40

/**
 * True when a path, followed as the system would follow it, lies in one of the roots. False when nobody can tell. A relative
 * path starts at `base`, which itself starts at the workspace.
 */
export async function isInside(
  path: string,
  base: string,
  roots: readonly string[],
  files: PathFiles,
): Promise<boolean> {
  const real = await resolvePath(path, isAbsolute(base) ? base : files.folder + sep + base, files)
  if (real === undefined) return false
  for (const root of roots) {
    const realRoot = await resolvePath(root, files.folder, files)
    if (realRoot === undefined) continue
    if (real === realRoot || real.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) return true
  }
  return false
}

/**
 * Where a path leads, links followed one segment at a time: `link/..` is the parent of the link's target, and a link to
 * something that is not there yet is still a way out. What does not exist is taken as written.
 */
async function resolvePath(path: string, base: string, files: PathFiles): Promise<string | undefined> {
  if (path.includes('\0') || path.length > longestPath) return undefined
  // Not joined by the library, which would take `link/..` apart by its letters.
  const whole = isAbsolute(path) ? path : base + sep + path
  let here = parse(whole).root
  if (here === '') return undefined
  const rest = segmentsOf(whole.slice(here.length)).reverse()
  let links = 0
  for (let segment = rest.pop(); segment !== undefined; segment = rest.pop()) {
    if (segment === '..') here = join(here, '..')
    if (segment === '..' || segment === '.') continue
    const next = join(here, segment)
    try {
      here = await files.realpath(next)
      continue
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') return undefined
    }
    const target = await linkAt(next, files)
    if (target === null) return undefined
    if (target === undefined) here = next
    else {
      if (++links > mostLinks) return undefined
      if (isAbsolute(target)) here = parse(target).root
      rest.push(...segmentsOf(target.slice(isAbsolute(target) ? here.length : 0)).reverse())
    }
  }
  return here
}

/** Where a link points; undefined when nothing is there, null when the file system will not say. */
async function linkAt(path: string, files: PathFiles): Promise<string | undefined | null> {
  try {
    return await files.readlink(path)
  } catch (error) {
    return codeOf(error) === 'ENOENT' || codeOf(error) === 'EINVAL' ? undefined : null
  }
}

function segmentsOf(path: string): string[] {
  return path.split(sep === '\\' ? /[\\/]/ : '/').filter(segment => segment !== '')
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
