import { RathError } from '../../base/errors.ts'
import { absentNode, type FileNode, type FolderNode, folderNode, type IndexNode } from './file-index.ts'
import { tooBig, type WorkspaceLimits } from './limits.ts'
import { nameOf } from './names.ts'
import { ownFolder } from './scan.ts'

/** What a look at a workspace elsewhere found: its files as they were described there, and the digests of their content by path. */
export interface RemoteLook {
  readonly root: FolderNode
  readonly digests: ReadonlyMap<string, string>
}

/**
 * Reads what `lookScript` wrote. All of it is the sandbox's word, which may be any bytes: names are checked, numbers are, and how many there are,
 * and nothing of it becomes a path of this machine. Undefined when files came or went while it was written.
 */
export function readLook(
  bytes: Buffer,
  known: FolderNode | undefined,
  limits: Required<WorkspaceLimits>,
): RemoteLook | undefined {
  // A character for each byte.
  const text = bytes.toString('latin1')
  if (!text.endsWith('\0done')) throw unreadable('its end is missing')
  const now = Number(text.slice(0, text.indexOf('\n')))
  if (!Number.isSafeInteger(now)) throw unreadable('it does not begin with a time')
  const { names, end } = readNames(text, text.indexOf('\n') + 1, limits)
  const linesEnd = text.indexOf('\0', end)
  const lines = text.slice(end, linesEnd)
  const digests = new Map<string, string>()
  const hashed = text.slice(linesEnd + 1, -'\0done'.length)
  const root = folderNode(rootMode, new Map(), known)
  const folders = new Map<string, FolderNode>([['.', root]])
  let at = 0
  let hashedAt = 0
  for (const name of names) {
    described.lastIndex = at
    const found = described.exec(lines)
    if (found === null || !lines.startsWith(`${name}\n`, described.lastIndex)) return undefined
    at = described.lastIndex + name.length + 1
    if (name === '.') continue
    const [, mode = '', size, modified, changed, inode] = found
    const bits = Number.parseInt(mode, 16)
    if (bits >> 12 === 8) {
      const digest = digestAt(hashed, hashedAt, name)
      if (digest !== undefined) {
        digests.set(name.slice(2), digest.value)
        hashedAt = digest.end
      }
    }
    place(name, folders, limits, {
      mode: bits,
      size: Number(size),
      modified: Number(modified) * 1000,
      changed: Number(changed) * 1000,
      inode: Number(inode),
      // Times there are in seconds: what changed in the second of the look, or the one before, is read again.
      racy: Number(changed) >= now - 1,
    })
  }
  return { root, digests }
}

const rootMode = 0o755
const described = /([0-9a-f]{1,8}) (\d{1,18}) (-?\d{1,12}) (-?\d{1,12}) (\d{1,20}) /y
const digestLine = /\\?([0-9a-f]{64}) [ *]/y

interface Described {
  readonly mode: number
  readonly size: number
  readonly modified: number
  readonly changed: number
  readonly inode: number
  readonly racy: boolean
}

function readNames(text: string, start: number, limits: Required<WorkspaceLimits>) {
  const names: string[] = []
  for (let at = start; ; ) {
    const end = text.indexOf('\0', at)
    if (end < 0) throw unreadable('the list of names has no end')
    if (end === at) return { names, end: end + 1 }
    names.push(text.slice(at, end))
    if (names.length > limits.files * 2) {
      throw new RathError(
        'workspace-too-big',
        `The workspace holds more than ${limits.files * 2} files and folders, and the limit is ${limits.files} files. Work in a smaller folder.`,
      )
    }
    at = end + 1
  }
}

/** Programs write names with line feeds or backslashes in them escaped, or as they are. */
function digestAt(
  hashed: string,
  at: number,
  name: string,
): { readonly value: string; readonly end: number } | undefined {
  digestLine.lastIndex = at
  const found = digestLine.exec(hashed)
  if (found === null) return undefined
  const escaped = name.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  for (const written of [`${name}\n`, `${escaped}\n`]) {
    const start = digestLine.lastIndex
    if (hashed.startsWith(written, start)) return { value: found[1] as string, end: start + written.length }
  }
  return undefined
}

/** Puts an entry into its folder. What lies in one that is not part of the workspace, or not looked into, is not either. */
function place(
  path: string,
  folders: Map<string, FolderNode>,
  limits: Required<WorkspaceLimits>,
  found: Described,
): void {
  const slash = path.lastIndexOf('/')
  const parent = folders.get(path.slice(0, slash))
  const bytes = path.slice(slash + 1)
  if (parent === undefined || bytes === '' || bytes === '.' || bytes === '..') return
  if (path === `./${ownFolder}`) return
  const name = nameOf(Buffer.from(bytes, 'latin1'))
  const kind = found.mode >> 12
  const isFolder = kind === 4
  let node: IndexNode
  // A name that is no text cannot be said in a command.
  if (!name.isWellFormed()) node = absentNode({ reason: 'unreadable' })
  else if (isFolder && path.split('/').length > limits.depth) node = absentNode({ reason: 'too-deep' })
  else if (isFolder) {
    const old = parent.was?.entries.get(name)
    node = folderNode(found.mode & 0o7777, new Map(), old?.kind === 'folder' ? old : undefined)
    folders.set(path, node)
  } else if (kind === 8 && found.size > limits.file) node = tooBig(found.size, found.modified)
  else if (kind === 8 || kind === 10) node = fileOf(kind === 10, found, parent.was?.entries.get(name))
  else node = absentNode({ reason: kind === 1 ? 'fifo' : kind === 12 ? 'socket' : 'device' })
  parent.entries.set(name, node)
}

function fileOf(isLink: boolean, found: Described, old: IndexNode | undefined): FileNode {
  const kind = isLink ? 'link' : 'file'
  const mode = found.mode & 0o7777
  const { size, modified, changed, inode, racy } = found
  const isSame =
    old?.kind === kind &&
    !old.racy &&
    old.mode === mode &&
    old.size === size &&
    old.modified === modified &&
    old.changed === changed &&
    old.inode === inode
  return { kind, mode, size, modified, changed, inode, racy, id: isSame ? old.id : undefined }
}

function unreadable(why: string): RathError {
  return new RathError(
    'sandbox-unsupported',
    `The files of this sandbox cannot be kept: what it says of them cannot be read, ${why}. It needs sh, date, find, stat, sha256sum and base64 as busybox has them.`,
  )
}
