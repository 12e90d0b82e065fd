import { createHash } from 'node:crypto'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import type { ExecOptions, Sandbox } from '../spec.ts'
import { ObjectBatch } from './batch.ts'
import { Breath } from './breath.ts'
import {
  absentNode,
  type FileNode,
  type FolderNode,
  folderNode,
  type IndexNode,
  isAlike,
  totalsOf,
  treeEntries,
} from './file-index.ts'
import { defaultLimits, type WorkspaceLimits, withinLimits } from './limits.ts'
import { checkId } from './object.ts'
import type { ObjectStore } from './objects.ts'
import { readLook } from './remote-look.ts'
import {
  hashScript,
  linkScript,
  lookScript,
  modeScript,
  readScript,
  removeScript,
  unpackScript,
} from './remote-scripts.ts'
import type { NotRestored, RestoreReport } from './restore.ts'
import { ownFolder } from './scan.ts'
import { type TarEntry, tarOf } from './tar.ts'
import { readTree, type Tree, type TreeEntry, writeTree } from './tree.ts'
import type { RestoreOptions, Snapshot } from './workspace.ts'

/** What one script brings or takes: bytes of files, and characters of their names, which are part of a command line. */
const batchBytes = 8 * 1024 * 1024
const batchNames = 24 * 1024
/** From here on, all files are hashed at once. */
const manyFiles = 200
/** Digests of content that are remembered. */
const mostDigests = 200_000

/** By the digest that programs there compute of content: the id that it has here. Shared by the workspaces of a runtime. */
export class KnownContent {
  readonly #ids = new Map<string, Digest>()

  get(digest: string): Digest | undefined {
    return this.#ids.get(digest)
  }

  add(content: Uint8Array, id: Digest): void {
    this.#ids.set(createHash('sha256').update(content).digest('hex'), id)
    for (const old of this.#ids.keys()) {
      if (this.#ids.size <= mostDigests) break
      this.#ids.delete(old)
    }
  }
}

/**
 * The files of a sandbox that this machine cannot look into, as a value like those of a `Workspace`. Programs of the sandbox list and hash them, so
 * that only content which is not known here travels. Calls are done one after the other. `.openrath` at the top is no part of it.
 */
export class RemoteWorkspace implements AsyncDisposable {
  readonly folder: string
  readonly objects: ObjectStore
  readonly #sandbox: Sandbox
  readonly #known: KnownContent
  readonly #limits: Required<WorkspaceLimits>
  #root: FolderNode | undefined
  #tree: Digest | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(sandbox: Sandbox, objects: ObjectStore, known: KnownContent, limits: WorkspaceLimits = {}) {
    this.folder = sandbox.cwd
    this.objects = objects
    this.#sandbox = sandbox
    this.#known = known
    this.#limits = { ...defaultLimits, ...limits }
  }

  /** Tree of the last snapshot taken or restored here. */
  get tree(): Digest | undefined {
    return this.#tree
  }

  /** The files as they are now. All of them are listed, whichever paths are given; only what changed is hashed, and only what is new comes here. */
  snapshot(_paths?: readonly string[], options: { readonly signal?: AbortSignal } = {}): Promise<Snapshot> {
    return this.#queue(async () => {
      const root = await this.#look(options.signal)
      return { tree: root.tree as Digest, notKept: [...notKeptIn(root, '')] }
    })
  }

  /** Makes the workspace equal to a tree, touching only what differs. What was never kept stays, unless its place is needed. */
  restore(tree: Digest, options: RestoreOptions = {}): Promise<RestoreReport> {
    return this.#queue(async () => {
      checkId(tree)
      const { from, onStart, signal } = options
      let current = await this.#look(signal)
      const before = current.tree as Digest
      const nothing = { before, tree: before, written: 0, removed: 0, notRestored: [] }
      if (from !== undefined && before !== from) return nothing
      onStart?.(before)
      let [written, removed] = [0, 0]
      let notRestored: readonly NotRestored[] = []
      // A second round for modes, where a mask took bits of them away.
      for (let round = 0; round < 2 && current.tree !== tree; round++) {
        const plan = new Plan(current, tree, this.objects)
        await this.#apply(plan, signal)
        written += plan.written.length
        removed += plan.removed.length
        notRestored = plan.notRestored
        current = await this.#look(signal)
      }
      return { before, tree: current.tree as Digest, written, removed, notRestored }
    })
  }

  async close(): Promise<void> {
    await this.#last
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #look(signal: AbortSignal | undefined): Promise<FolderNode> {
    const breath = new Breath(signal)
    let isAll = this.#root === undefined
    for (let attempt = 0; attempt < 5; attempt++) {
      const bytes = await this.#run(lookScript, [isAll ? 'all' : ''], { signal })
      const look = readLook(bytes, this.#root, this.#limits)
      if (look === undefined) continue
      const root = withinLimits(look.root, this.#limits)
      const unknown = [...unread(root, '')]
      const files = unknown.filter(({ node }) => node.kind === 'file')
      if (!isAll && files.length > manyFiles) {
        isAll = true
        continue
      }
      const digests = isAll ? look.digests : await this.#hash(files, signal)
      const batch = new ObjectBatch(this.objects)
      try {
        await this.#read(unknown, digests, batch, breath, signal)
        setTrees(root, batch)
        batch.finish()
      } catch (error) {
        batch.discard()
        throw error
      }
      this.#root = root
      this.#tree = root.tree
      return root
    }
    throw new RathError(
      'sandbox-failed',
      `The files in ${this.folder} of ${this.#sandbox.backend} change while they are looked at. End what still writes there.`,
    )
  }

  async #hash(files: readonly Unread[], signal: AbortSignal | undefined): Promise<Map<string, string>> {
    const digests = new Map<string, string>()
    for (const batch of batches(files, () => 0)) {
      const lines = (await this.#run(hashScript, pathsOf(batch), { signal })).toString('latin1').split('\n')
      for (const [i, { path }] of batch.entries()) {
        const digest = lines[i] as string
        if (/^[0-9a-f]{64}$/.test(digest)) digests.set(path, digest)
      }
    }
    return digests
  }

  /** Gives everything that was found its id: by its digest where that is known here, else by its content. */
  async #read(
    unknown: readonly Unread[],
    digests: ReadonlyMap<string, string>,
    batch: ObjectBatch,
    breath: Breath,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const wanted: Unread[] = []
    for (const one of unknown) {
      // As the sandbox wrote it: a character for each byte.
      const digest = digests.get(Buffer.from(one.path).toString('latin1')) ?? digests.get(one.path)
      const id = digest === undefined ? undefined : this.#known.get(digest)
      if (one.node.kind === 'file' && id !== undefined && batch.keepsYoung(id)) one.give(id)
      else wanted.push(one)
    }
    const put = (one: Unread, content: Uint8Array) => {
      const id = batch.put('blob', content)
      if (one.node.kind === 'file') this.#known.add(content, id)
      one.give(id)
    }
    for (const links of batches(
      wanted.filter(({ node }) => node.kind === 'link'),
      () => 0,
    )) {
      const targets = (await this.#run(linkScript, pathsOf(links), { signal }))
        .toString('latin1')
        .split('\n\0')
      for (const [i, one] of links.entries()) put(one, Buffer.from(targets[i] ?? '', 'latin1'))
    }
    const files = wanted.filter(({ node }) => node.kind === 'file')
    for (const some of batches(files, ({ node }) => node.size)) {
      if (breath.due) await breath.take()
      for (const [one, content] of await this.#contents(some, signal)) {
        if (breath.due) await breath.take()
        if (content === undefined) one.giveUp()
        else put(one, content)
      }
    }
  }

  async #contents(
    files: readonly Unread[],
    signal: AbortSignal | undefined,
  ): Promise<readonly (readonly [Unread, Uint8Array | undefined])[]> {
    const bytes = await this.#run(readScript, pathsOf(files), { signal })
    const end = bytes.indexOf(0)
    const sizes = bytes.toString('latin1', 0, Math.max(0, end)).split('\n').slice(0, -1).map(Number)
    const body = bytes.subarray(end + 1)
    const whole = sizes.reduce((sum, size) => sum + size, 0)
    if (sizes.length === files.length && whole === body.length) {
      let at = 0
      return files.map((one, i) => {
        const start = at
        at += sizes[i] as number
        return [one, body.subarray(start, at)] as const
      })
    }
    // One of them cannot be read, or changed meanwhile: nobody knows where the next begins.
    const each: (readonly [Unread, Uint8Array | undefined])[] = []
    for (const one of files) each.push([one, await this.#sandbox.files.read(one.path).catch(() => undefined)])
    return each
  }

  async #apply(plan: Plan, signal: AbortSignal | undefined): Promise<void> {
    for (const paths of batches(plan.removed, () => 0))
      await this.#run(removeScript, pathsOf(paths), { signal })
    let entries: TarEntry[] = []
    let bytes = 0
    const flush = async () => {
      if (entries.length > 0) await this.#unpack(entries, signal)
      entries = []
      bytes = 0
    }
    for (const { path, entry } of plan.written) {
      const content = entry.kind === 'folder' ? new Uint8Array() : plan.read(path, entry)
      if (content === undefined) continue
      if (entry.kind === 'file') this.#known.add(content, entry.id)
      if (bytes + content.length > batchBytes) await flush()
      entries.push({
        path: `./${path}`,
        kind: entry.kind as TarEntry['kind'],
        mode: entry.mode || 0o777,
        content,
      })
      bytes += content.length + 1024
    }
    await flush()
    for (const [mode, some] of Map.groupBy(plan.modes, ({ mode }) => mode)) {
      for (const paths of batches(some, () => 0))
        await this.#run(modeScript, [mode.toString(8), ...pathsOf(paths)], { signal })
    }
  }

  async #unpack(entries: readonly TarEntry[], signal: AbortSignal | undefined): Promise<void> {
    const options = { stdin: tarOf(entries), ...(signal && { signal }) }
    const { exitCode, stdout } = await this.#sandbox.exec(['/bin/sh', '-c', unpackScript, 'sh'], options)
      .result
    if (exitCode === 0) return
    throw new RathError(
      'sandbox-failed',
      `The files could not be put into ${this.folder} of ${this.#sandbox.backend}: ${new TextDecoder().decode(stdout).trim() || exitCode}. It needs tar as busybox has it, and room for them.`,
      { data: { exitCode } },
    )
  }

  /** What a script writes, byte for byte. */
  async #run(
    script: string,
    args: readonly string[],
    { signal }: { readonly signal?: AbortSignal | undefined },
  ): Promise<Buffer> {
    const isText = !this.#sandbox.capabilities.binaryOutput
    const options: ExecOptions = { outputLimit: mostOutput, ...(signal && { signal }) }
    const argv = ['/bin/sh', '-c', script, 'sh', isText ? 'text' : 'bytes', ...args]
    const { stdout, truncated } = await this.#sandbox.exec(argv, options).result
    if (truncated) {
      throw new RathError(
        'workspace-too-big',
        `What ${this.#sandbox.backend} says of the files in ${this.folder} is longer than ${mostOutput} bytes. Work in a smaller folder.`,
      )
    }
    const bytes = Buffer.from(stdout.buffer, stdout.byteOffset, stdout.byteLength)
    return isText ? Buffer.from(bytes.toString('latin1'), 'base64') : bytes
  }

  #queue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }
}

const mostOutput = 512 * 1024 * 1024

/** A file or link that has no id yet. */
interface Unread {
  readonly path: string
  readonly node: FileNode
  give(id: Digest): void
  giveUp(): void
}

function* unread(folder: FolderNode, before: string): Generator<Unread> {
  for (const [name, node] of folder.entries) {
    if (node.kind === 'folder') yield* unread(node, `${before}${name}/`)
    else if (node.kind !== 'absent' && node.id === undefined) {
      yield {
        path: before + name,
        node,
        give: id => void folder.entries.set(name, { ...node, id }),
        giveUp: () => void folder.entries.set(name, absentNode({ reason: 'unreadable', size: node.size })),
      }
    }
  }
}

function setTrees(folder: FolderNode, batch: ObjectBatch): void {
  const { was } = folder
  let isSame = was?.tree !== undefined && was.entries.size === folder.entries.size
  for (const [name, node] of folder.entries) {
    if (node.kind === 'folder') setTrees(node, batch)
    isSame &&= isAlike(node, was?.entries.get(name))
  }
  folder.was = undefined
  delete folder.totals
  folder.tree = isSame ? was?.tree : writeTree(treeEntries(folder), batch)
}

function* batches<T extends { readonly path: string }>(
  files: readonly T[],
  sizeOf: (file: T) => number,
): Generator<T[]> {
  let batch: T[] = []
  let [bytes, names] = [0, 0]
  for (const file of files) {
    const [size, name] = [sizeOf(file), Buffer.byteLength(file.path) + 16]
    if (batch.length > 0 && (bytes + size > batchBytes || names + name > batchNames)) {
      yield batch
      batch = []
      bytes = names = 0
    }
    batch.push(file)
    bytes += size
    names += name
  }
  if (batch.length > 0) yield batch
}

function pathsOf(files: readonly { readonly path: string }[]): string[] {
  return files.map(({ path }) => `./${path}`)
}

function* notKeptIn(folder: FolderNode, before: string): Generator<Snapshot['notKept'][number]> {
  if (totalsOf(folder).absent === 0) return
  for (const [name, node] of folder.entries) {
    if (node.kind === 'folder') yield* notKeptIn(node, `${before}${name}/`)
    else if (node.kind === 'absent' && node.entry.absent) yield { path: before + name, ...node.entry.absent }
  }
}

/** What has to be done to make a workspace equal to a tree. */
class Plan {
  readonly removed: { readonly path: string }[] = []
  readonly written: { readonly path: string; readonly entry: TreeEntry }[] = []
  readonly modes: { readonly path: string; readonly mode: number }[] = []
  readonly notRestored: NotRestored[] = []
  readonly #objects: ObjectStore

  constructor(current: FolderNode, tree: Digest, objects: ObjectStore) {
    this.#objects = objects
    const target = new Map(readTree(objects, tree))
    target.delete(ownFolder)
    this.#folder(current, target, '')
  }

  read(path: string, { id }: TreeEntry): Buffer | undefined {
    try {
      return this.#objects.read(id)
    } catch (error) {
      this.notRestored.push({ path, why: 'failed', message: (error as Error).message })
      return undefined
    }
  }

  #folder(current: FolderNode, target: Tree, before: string): void {
    for (const [name, node] of current.entries) if (!target.has(name)) this.#remove(node, before + name)
    for (const [name, entry] of target) {
      const path = before + name
      const node = current.entries.get(name)
      if (entry.absent !== undefined) {
        if (node?.kind !== 'absent' || node.entry.id !== entry.id)
          this.notRestored.push({ path, why: 'not-kept', reason: entry.absent.reason })
      } else if (!name.isWellFormed()) {
        this.notRestored.push({ path, why: 'failed', message: 'its name is no text' })
      } else if (entry.kind === 'folder') this.#subfolder(node, entry, path)
      else this.#file(node, entry, path)
    }
  }

  #file(node: IndexNode | undefined, entry: TreeEntry, path: string): void {
    const isThere = node?.kind === 'file' || node?.kind === 'link' ? node.kind === entry.kind : false
    const same = isThere && (node as FileNode).id === entry.id ? (node as FileNode) : undefined
    if (same === undefined) {
      if (node !== undefined) this.removed.push({ path })
      this.written.push({ path, entry })
    } else if (same.kind === 'file' && same.mode !== entry.mode) {
      this.modes.push({ path, mode: entry.mode })
    }
  }

  #subfolder(node: IndexNode | undefined, entry: TreeEntry, path: string): void {
    if (node?.kind === 'folder') {
      if (node.mode !== entry.mode) this.modes.push({ path, mode: entry.mode })
      if (node.tree !== entry.id) this.#folder(node, readTree(this.#objects, entry.id), `${path}/`)
      return
    }
    if (node !== undefined) this.removed.push({ path })
    this.written.push({ path, entry })
    this.#folder(folderNode(0, new Map()), readTree(this.#objects, entry.id), `${path}/`)
  }

  /** What was never kept stays. */
  #remove(node: IndexNode, path: string): void {
    if (node.kind === 'absent') {
      const reason = node.entry.absent?.reason
      this.notRestored.push({ path, why: 'left', ...(reason && { reason }) })
    } else if (node.kind === 'folder' && totalsOf(node).absent > 0) {
      for (const [name, below] of node.entries) this.#remove(below, `${path}/${name}`)
    } else this.removed.push({ path })
  }
}
