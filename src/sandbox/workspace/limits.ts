import { createHash } from 'node:crypto'
import { RathError } from '../../base/errors.ts'
import {
  absentNode,
  type FileNode,
  type FolderNode,
  folderNode,
  type IndexNode,
  totalsOf,
} from './file-index.ts'

/** What is too big to keep. It is recorded by size and time instead, so that a snapshot shows that it changed and a restore says that it cannot. */
export interface WorkspaceLimits {
  /** Bytes of a file. Default 50 MB. */
  readonly file?: number
  /** Files in a folder that a tool fills and can fill again, such as `node_modules`. Default 50,000. */
  readonly filesInHeavyFolder?: number
  /** Names of such folders. Default `node_modules`, `.venv`, `venv`, `target`, `vendor`, `.tox`, `.gradle`, `.cache`, `.next`. */
  readonly heavyFolders?: readonly string[]
  /** Bytes of all files together: beyond, the largest are not kept. Default 4 GB. */
  readonly bytes?: number
  /** Files altogether: beyond, the heavy folders are not kept, and if that is not enough the snapshot is refused. Default 500,000. */
  readonly files?: number
  /** How deep folders are looked into. Default 200. */
  readonly depth?: number
}

export const defaultLimits: Required<WorkspaceLimits> = Object.freeze({
  file: 50 * 1024 ** 2,
  filesInHeavyFolder: 50_000,
  heavyFolders: ['node_modules', '.venv', 'venv', 'target', 'vendor', '.tox', '.gradle', '.cache', '.next'],
  bytes: 4 * 1024 ** 3,
  files: 500_000,
  depth: 200,
})

/** The folder with what is too much in it replaced by a record of it. O(1) for a folder that is within its limits. */
export function withinLimits(root: FolderNode, limits: Required<WorkspaceLimits>): FolderNode {
  let kept = withoutHeavy(root, limits, limits.filesInHeavyFolder)
  if (totalsOf(kept).files > limits.files) kept = withoutHeavy(kept, limits, 0)
  if (totalsOf(kept).files > limits.files) {
    throw new RathError(
      'workspace-too-big',
      `The workspace holds ${totalsOf(kept).files} files, and the limit is ${limits.files}. Work in a smaller folder, name the folders that need not be kept as limits.heavyFolders, or raise limits.files.`,
    )
  }
  if (totalsOf(kept).bytes > limits.bytes) kept = withoutLargest(kept, limits.bytes)
  return kept
}

function withoutHeavy(folder: FolderNode, limits: Required<WorkspaceLimits>, most: number): FolderNode {
  if (totalsOf(folder).files <= most) return folder
  return mapNodes(folder, (name, node) => {
    if (node.kind !== 'folder') return node
    const { files } = totalsOf(node)
    if (files <= most || !limits.heavyFolders.includes(name)) return withoutHeavy(node, limits, most)
    return absentNode({ reason: 'too-many', files, digest: statDigest(node) })
  })
}

function withoutLargest(root: FolderNode, most: number): FolderNode {
  const files = [...walk(root, '')].sort(
    ([path, one], [otherPath, other]) => other.size - one.size || (path < otherPath ? -1 : 1),
  )
  const dropped = new Set<IndexNode>()
  let { bytes } = totalsOf(root)
  for (const [, file] of files) {
    if (bytes <= most) break
    dropped.add(file)
    bytes -= file.size
  }
  const drop = (folder: FolderNode): FolderNode =>
    mapNodes(folder, (_, node) => {
      if (node.kind === 'folder') return drop(node)
      return dropped.has(node) ? tooBig((node as FileNode).size, (node as FileNode).modified) : node
    })
  return drop(root)
}

export function tooBig(size: number, modified: number): IndexNode {
  return absentNode({ reason: 'too-big', size, modified: nanoseconds(modified) })
}

/** Of milliseconds, to the microsecond. */
export function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1_000)) * 1_000n)
}

/** The same object when nothing in it changes. */
function mapNodes(folder: FolderNode, map: (name: string, node: IndexNode) => IndexNode): FolderNode {
  let changed = false
  const entries = new Map<string, IndexNode>()
  for (const [name, node] of folder.entries) {
    const mapped = map(name, node)
    changed ||= mapped !== node
    entries.set(name, mapped)
  }
  return changed ? folderNode(folder.mode, entries) : folder
}

function statDigest(folder: FolderNode): string {
  const hash = createHash('sha256')
  const files = [...walk(folder, '')].sort(([one], [other]) => (one < other ? -1 : 1))
  for (const [path, { size, modified, mode }] of files) {
    hash.update(`${JSON.stringify(path)} ${size} ${nanoseconds(modified)} ${mode.toString(8)}\n`)
  }
  return hash.digest('hex')
}

function* walk(folder: FolderNode, before: string): Generator<[string, FileNode]> {
  for (const [name, node] of folder.entries) {
    if (node.kind === 'folder') yield* walk(node, `${before}${name}/`)
    else if (node.kind !== 'absent') yield [before + name, node]
  }
}
