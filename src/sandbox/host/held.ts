import { closeSync, constants, openSync, readlinkSync } from 'node:fs'
import { RathError, show } from '../../base/errors.ts'
import { platformOf } from '../../base/platform.ts'
import type { WorkspacePaths } from './paths.ts'

/** Linux has it and Node does not name it: open to be used by number only, which needs no right to read and waits for nobody. */
const O_PATH = 0o10000000

/** Something open, known to be where it was looked for. */
export interface Held extends Disposable {
  readonly fd: number
  /** A path that leads to it whatever becomes of its name. */
  readonly path: string
}

/**
 * Opens what a resolved path leads to and makes sure that it still is what was resolved, so that a command which swaps a folder for a link
 * in between gets an error instead of a file outside. Where there is no Linux `/proc`, only the last name is made sure of.
 */
export function hold(paths: WorkspacePaths, real: string, what: 'file' | 'folder' | 'entry'): Held {
  const canCheck = platformOf().proc
  // Without O_NONBLOCK, opening a pipe would wait for somebody to write into it.
  const flags = what === 'file' || !canCheck ? constants.O_RDONLY | constants.O_NONBLOCK : O_PATH
  const folder = what === 'folder' ? constants.O_DIRECTORY : 0
  const fd = openSync(real, flags | folder | constants.O_NOFOLLOW)
  const held: Held = {
    fd,
    path: canCheck ? `/proc/self/fd/${fd}` : real,
    [Symbol.dispose]: () => closeSync(fd),
  }
  if (!canCheck) return held
  try {
    const [found, expected] = [readlinkSync(held.path), nameOf(paths, real)]
    // What was replaced since by a whole new file is still what it was.
    if (found !== expected && found !== `${expected} (deleted)`) throw replaced(paths.relative(real))
    return held
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

const roots = new WeakMap<WorkspacePaths, string>()

/** What the system calls a path of the workspace once it is open: in another mount namespace that is not the path that led there. */
function nameOf(paths: WorkspacePaths, real: string): string {
  const root = roots.get(paths) ?? rootName(paths.root)
  roots.set(paths, root)
  const relative = paths.relative(real)
  return relative === '.' ? root : `${root.replace(/\/$/, '')}/${relative}`
}

function rootName(root: string): string {
  const fd = openSync(root, O_PATH | constants.O_DIRECTORY)
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } finally {
    closeSync(fd)
  }
}

function replaced(path: string): RathError {
  return new RathError('path-outside', `${show(path)} was replaced while it was being used; try again.`, {
    data: { path },
  })
}
