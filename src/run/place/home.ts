import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { Chunk } from '../../session/chunk.ts'

/** Where this user's runtimes keep what outlives them. */
export function homeFolder(): string {
  return process.env.OPENRATH_HOME ?? join(homedir(), '.openrath')
}

/**
 * Makes a folder that only its user may enter. One that others could enter is closed, and so is what lies in those of its `parts`, which were made
 * when it was open. Other parts hold files whose modes are not ours to change.
 */
export function privateFolder(path: string, parts: readonly string[] = []): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  if ((lstatSync(path).mode & 0o077) === 0) return path
  for (const part of parts) if (existsSync(join(path, part))) closeAll(join(path, part))
  // Last: a repair that was cut off is made again.
  chmodSync(path, 0o700)
  return path
}

function closeAll(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isSymbolicLink()) return
  if ((found.mode & 0o077) !== 0) chmodSync(path, found.mode & 0o700)
  if (found.isDirectory()) for (const name of readdirSync(path)) closeAll(join(path, name))
}

/**
 * Placements that came with somebody else's record. They stay in it as evidence of where the work was done, and decide nothing here: neither
 * the folder nor the environment that commands would get. By the ids of their chunks, which cover all that they say.
 */
export function markImported(placements: ReadonlySet<Digest>): void {
  if (placements.size === 0) return
  const folder = privateFolder(join(homeFolder(), 'imported'))
  for (const id of placements) writeFileSync(join(folder, id), '', { mode: 0o600 })
}

const own = new WeakSet<Chunk>()

/** Refuses to act on a placement that was imported. */
export function refuseImported(placed: Chunk<'placement'>): void {
  if (own.has(placed)) return
  const folder = join(homeFolder(), 'imported')
  const isMarked = [placed.id, placed.origin].some(id => id !== undefined && existsSync(join(folder, id)))
  if (!isMarked) {
    own.add(placed)
    return
  }
  const { backend, spec } = placed
  const where =
    spec === undefined ? backend : `${backend} ${typeof spec === 'string' ? spec : JSON.stringify(spec)}`
  throw new RathError(
    'placement-missing',
    `This session was imported. Its placement (${where}) says where somebody else worked, and decides nothing here. Place the session yourself and go on: session.to('local', './') or, with rath run, --from SESSION --local FOLDER.`,
    { data: { backend } },
  )
}
