import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Digest, sha256 } from '../../base/digest.ts'
import { newId } from '../../base/ids.ts'
import { absentNode, type FolderNode, type IndexNode } from './file-index.ts'
import { checkId } from './object.ts'
import type { ObjectStore } from './objects.ts'
import type { Absent } from './tree.ts'

/**
 * What is remembered of a folder between processes, beside the objects: the tree it had, and its index. Both may be lost without harm: the
 * next snapshot then reads every file again.
 */
export class FolderState {
  readonly #home: string
  readonly #folder: string

  /** `folder` is a real path. */
  constructor(objects: ObjectStore, folder: string) {
    this.#folder = folder
    this.#home = join(statesOf(objects), sha256(folder).slice(0, 32))
  }

  tree(): Digest | undefined {
    return readState(this.#home)?.tree
  }

  /** Over what was there, which is as long: a new file each time would be a fifth of the cost of a snapshot. A torn one counts as none. */
  keepTree(tree: Digest): void {
    const text = JSON.stringify({ folder: this.#folder, tree })
    try {
      writeFileSync(join(this.#home, 'tree.json'), text, { flag: 'r+' })
    } catch {
      mkdirSync(this.#home, { recursive: true, mode: 0o700 })
      writeFileSync(join(this.#home, 'tree.json'), text, { mode: 0o600 })
    }
  }

  /** Undefined when there is none that we can read. */
  index(): FolderNode | undefined {
    return readIndex(this.#home)
  }

  keepIndex(root: FolderNode): void {
    const path = join(this.#home, 'index.json')
    const temporary = `${path}.${newId()}`
    mkdirSync(this.#home, { recursive: true, mode: 0o700 })
    const text = JSON.stringify({ version: indexVersion, root: rowOf('', root) })
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, path)
  }
}

/**
 * The trees of folders that are still there, and those of their indexes, which are older where a process was killed: what an index knows is not
 * kept again. What is remembered of other folders is removed.
 */
export function treesInUse(objects: ObjectStore): Digest[] {
  const states = statesOf(objects)
  const trees: Digest[] = []
  for (const name of existsSync(states) ? readdirSync(states) : []) {
    const home = join(states, name)
    const state = readState(home)
    if (state !== undefined && existsSync(state.folder)) {
      const indexed = readIndex(home)?.tree
      trees.push(state.tree, ...(indexed === undefined ? [] : [indexed]))
    } else rmSync(home, { recursive: true, force: true })
  }
  return trees
}

function statesOf(objects: ObjectStore): string {
  return join(objects.path, 'openrath', 'folders')
}

function readState(home: string): { readonly folder: string; readonly tree: Digest } | undefined {
  try {
    const state = JSON.parse(readFileSync(join(home, 'tree.json'), 'utf8'))
    checkId(state.tree)
    return state
  } catch {
    return undefined
  }
}

function readIndex(home: string): FolderNode | undefined {
  try {
    const { version, root } = JSON.parse(readFileSync(join(home, 'index.json'), 'utf8')) as {
      readonly version: number
      readonly root: Row
    }
    const node = version === indexVersion ? nodeOf(root) : undefined
    return node?.kind === 'folder' ? node : undefined
  } catch {
    return undefined
  }
}

const indexVersion = 2

type Row =
  | readonly [name: string, kind: 'folder', mode: number, tree: Digest | undefined, entries: readonly Row[]]
  | readonly [name: string, kind: 'absent', absent: Absent]
  | readonly [
      name: string,
      kind: 'file' | 'link',
      mode: number,
      size: number,
      modified: number,
      changed: number,
      inode: number,
      id: Digest,
      racy: 0 | 1,
    ]

function rowOf(name: string, node: IndexNode): Row {
  if (node.kind === 'absent') return [name, 'absent', node.entry.absent as Absent]
  if (node.kind === 'folder') {
    return [
      name,
      'folder',
      node.mode,
      node.tree,
      Array.from(node.entries, ([name, child]) => rowOf(name, child)),
    ]
  }
  const { kind, mode, size, modified, changed, inode, id, racy } = node
  return [name, kind, mode, size, modified, changed, inode, id as Digest, racy ? 1 : 0]
}

function nodeOf(row: Row): IndexNode {
  if (row[1] === 'absent') return absentNode(row[2])
  if (row[1] === 'folder') {
    const [, , mode, tree, rows] = row
    return { kind: 'folder', mode, tree, entries: new Map(rows.map(child => [child[0], nodeOf(child)])) }
  }
  const [, kind, mode, size, modified, changed, inode, id, racy] = row
  return { kind, mode, size, modified, changed, inode, id, racy: racy === 1 }
}
