import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { orNothing } from './or-nothing.ts'

/** What the index of a repository lists besides files. Paths are relative to the top of its work tree. */
export interface ListedFolders {
  /** Submodules. git looks into each of them, with the settings of its own `.git`. */
  readonly submodules: readonly string[]
  /** Folders that a sparse index names instead of what is in them. */
  readonly sparse: readonly string[]
}

/** Undefined for an index that is not of a known form; one that is missing lists nothing. `git` is the repository's own folder. */
export function foldersInIndex(git: string): ListedFolders | undefined {
  if (lstatSync(join(git, 'index'), orNothing) === undefined) return { submodules: [], sparse: [] }
  const hashLength = /objectformat\s*=\s*"?sha256/i.test(readPlain(join(git, 'config'))?.toString() ?? '')
    ? 32
    : 20
  const index = readPlain(join(git, 'index'))
  if (index === undefined) return undefined
  try {
    const own = readIndex(index, hashLength)
    if (own.shared === undefined) return own
    const shared = readPlain(join(git, `sharedindex.${own.shared}`))
    if (shared === undefined) return undefined
    const { submodules, sparse } = readIndex(shared, hashLength)
    return { submodules: [...own.submodules, ...submodules], sparse: [...own.sparse, ...sparse] }
  } catch {
    return undefined
  }
}

/** Another one when the index may have changed. */
export function indexMark(git: string): string {
  const found = lstatSync(join(git, 'index'), { bigint: true, throwIfNoEntry: false })
  return found ? `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}` : ''
}

const largest = 256 * 2 ** 20
const submodule = 0o160000
const folder = 0o040000

/** By Documentation/gitformat-index of git: versions 2, 3 and 4. Throws on anything else. */
function readIndex(index: Buffer, hashLength: number): ListedFolders & { readonly shared?: string } {
  const version = index.readUInt32BE(4)
  if (index.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) throw new Error('no index')
  const submodules: string[] = []
  const sparse: string[] = []
  let at = 12
  let path = Buffer.alloc(0)
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const start = at
    const mode = index.readUInt32BE(at + 24)
    at += 40 + hashLength
    at += index.readUInt16BE(at) & 0x4000 ? 4 : 2
    let same = 0
    if (version === 4) {
      let dropped = 0
      ;[dropped, at] = readOffset(index, at)
      same = path.length - dropped
      if (same < 0) throw new Error('no path')
    }
    const end = index.indexOf(0, at)
    if (end < 0) throw new Error('no path')
    path = Buffer.concat([path.subarray(0, same), index.subarray(at, end)])
    at = version === 4 ? end + 1 : start + ((end - start + 8) & ~7)
    if (mode === submodule) submodules.push(path.toString())
    if (mode === folder) sparse.push(path.toString())
  }
  const shared = sharedIn(index, at, hashLength)
  return { submodules, sparse, ...(shared !== undefined && { shared }) }
}

/** A number as the paths of version 4 begin with. */
function readOffset(index: Buffer, at: number): [number, number] {
  let byte = index.readUInt8(at++)
  let value = byte & 0x7f
  while (byte & 0x80) {
    byte = index.readUInt8(at++)
    value = (value + 1) * 128 + (byte & 0x7f)
  }
  return [value, at]
}

/** The name of the index that this one is split from. */
function sharedIn(index: Buffer, from: number, hashLength: number): string | undefined {
  for (let at = from; at + 8 <= index.length - hashLength; at += 8 + index.readUInt32BE(at + 4)) {
    if (index.toString('latin1', at, at + 4) !== 'link') continue
    const name = index.toString('hex', at + 8, at + 8 + hashLength)
    return /^0*$/.test(name) ? undefined : name
  }
  return undefined
}

/** Undefined where there is no plain file of a size that can be read. */
function readPlain(path: string): Buffer | undefined {
  const file = open(path)
  if (file === undefined) return undefined
  try {
    const { size } = fstatSync(file)
    return size <= largest ? readFileSync(file) : undefined
  } finally {
    closeSync(file)
  }
}

function open(path: string): number | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    if (fstatSync(file).isFile()) return file
    closeSync(file)
  } catch {
    // There is none.
  }
  return undefined
}
