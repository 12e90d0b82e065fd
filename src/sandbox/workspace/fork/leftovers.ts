import { lstatSync, type Stats } from 'node:fs'
import { lstat, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newId } from '../../../base/ids.ts'
import { stateOf } from '../../../base/process.ts'
import { orNothing } from '../../host/or-nothing.ts'
import { removeFolder } from '../../host/remove-folder.ts'
import { type LeftBy, type Owner, parseOwner, thisOwner } from './owner.ts'

/** What a process left that has ended without closing. */
export interface Leftover {
  readonly path: string
  /** On disk. */
  readonly bytes: number
  /** Whose it was; missing when the process ended before it could say. */
  readonly owner?: Owner
  /** `unknown`: of another machine or container, whose processes cannot be seen from here. Never removed. */
  readonly state: 'gone' | 'unknown'
}

/** An area says whose it is from the moment that it has its name. */
export async function makeArea(root: string): Promise<string> {
  const id = newId()
  const unnamed = join(root, `${id}${unfinished}`)
  await mkdir(root, { recursive: true, mode: 0o700 })
  await mkdir(unnamed, { mode: 0o700 })
  await writeFile(join(unnamed, ownerFile), `${JSON.stringify(thisOwner())}\n`)
  const path = join(root, id)
  await rename(unnamed, path)
  return path
}

export async function findLeftovers(root: string): Promise<readonly Leftover[]> {
  const found: Leftover[] = []
  for (const name of (await readdir(root).catch(() => [])).sort()) {
    const path = join(root, name)
    const owner = await readFile(join(path, ownerFile), 'utf8').then(parseOwner, () => undefined)
    const state = owner ? stateOf(owner) : await stateOfUnnamed(path, name)
    if (state === 'running') continue
    found.push({ path, bytes: await sizeOf(path), state, ...(owner && { owner }) })
  }
  return found
}

/** Removes what is surely nobody's, or only says what it would. */
export async function collectLeftovers(
  root: string,
  { dryRun = false, project, olderThan = 0 }: { readonly dryRun?: boolean } & LeftBy = {},
): Promise<{ readonly removed: readonly Leftover[]; readonly kept: readonly Leftover[] }> {
  const all = await findLeftovers(root)
  const found = all.filter(({ path, owner }) => {
    const isOf = project === undefined || owner?.project === project
    return isOf && (lstatSync(path, orNothing)?.mtimeMs ?? 0) <= Date.now() - olderThan
  })
  const removed = found.filter(({ state }) => state === 'gone')
  const kept = found.filter(({ state }) => state !== 'gone')
  if (!dryRun) for (const { path } of removed) await removeFolder(path)
  return { removed, kept }
}

const ownerFile = 'owner.json'
const unfinished = '.new'

/** Making an area takes a moment; one that has no owner after an hour will not get any. */
async function stateOfUnnamed(path: string, name: string): Promise<'running' | 'gone' | 'unknown'> {
  if (!name.endsWith(unfinished)) return 'unknown'
  const made = await stat(path).catch(() => undefined)
  return made && made.mtimeMs < Date.now() - 3_600_000 ? 'gone' : 'running'
}

/** Bytes on disk. A file with several names counts once, and what cannot be read does not count. */
export async function sizeOf(path: string, counted = new Set<number>()): Promise<number> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined || counted.has(found.ino)) return 0
  if (!found.isDirectory()) {
    if (found.nlink > 1) counted.add(found.ino)
    return bytesOf(found)
  }
  let bytes = bytesOf(found)
  for (const name of await readdir(path).catch(() => [])) bytes += await sizeOf(join(path, name), counted)
  return bytes
}

/** Some systems do not count blocks. */
function bytesOf({ blocks, size }: Stats): number {
  return Number.isFinite(blocks) ? blocks * 512 : size
}
