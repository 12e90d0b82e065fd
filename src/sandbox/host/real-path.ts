import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

/** A path of this process that leads into another mount namespace: the way in, and the path there. */
export function viewOf(path: string): { readonly root: string; readonly inside: string } | undefined {
  const [, root, inside] = /^(\/proc\/\d+\/root)(\/.*)$/.exec(path) ?? []
  return root === undefined || inside === undefined ? undefined : { root, inside }
}

/**
 * The path with its links resolved. The system answers wrongly for one that leads into another mount namespace, as if the way in
 * were a link to `/`; there the links are followed one by one. `ENOENT` when nothing is there.
 */
export function realPath(path: string): string {
  const view = viewOf(path)
  return view === undefined ? realpathSync.native(path) : view.root + realPathIn(view.root, view.inside)
}

const mostLinks = 40

/** The same for an absolute path as it is seen with `root` as the top. */
export function realPathIn(root: string, path: string): string {
  const rest = path.split('/').reverse()
  let here = '/'
  let links = 0
  for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
    if (name === '..') here = dirname(here)
    if (name === '..' || name === '.' || name === '') continue
    const next = join(here, name)
    if (!lstatSync(root + next).isSymbolicLink()) {
      here = next
      continue
    }
    if (++links > mostLinks) throw Object.assign(new Error(`too many links: ${path}`), { code: 'ELOOP' })
    const target = readlinkSync(root + next)
    if (isAbsolute(target)) here = '/'
    rest.push(...target.split('/').reverse())
  }
  return here
}
