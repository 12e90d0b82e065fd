import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { LooseObjects } from './loose.ts'
import {
  checkContent,
  checkId,
  damaged,
  emptyBlob,
  emptyTree,
  type Found,
  idOf,
  type ObjectKind,
} from './object.ts'
import { Pack } from './pack.ts'
import { PackWriter } from './pack-writer.ts'
import { RecentObjects } from './recent-objects.ts'

/**
 * Files and folders by the digest of what is in them: a bare git repository with sha256 ids, which any git from 2.29 on can look into with
 * `cat-file`, `ls-tree`, `diff-tree` and `fsck`. Several processes may use one at once: whatever is written appears whole or not at all, and every
 * read is checked against its digest. Reads and writes wait for the disk; objects are small and the disk is this machine's.
 */
export class ObjectStore {
  readonly path: string
  readonly loose: LooseObjects
  /** What was just written or read, so that looking at it again costs nothing. */
  readonly recent = new RecentObjects()
  readonly #packFolder: string
  #packs: readonly Pack[] = []
  #packsSeen = ''

  private constructor(path: string) {
    this.path = path
    this.loose = new LooseObjects(join(path, 'objects'))
    this.#packFolder = join(path, 'objects', 'pack')
  }

  /** Makes the folder if it is missing. One that holds something else is refused. */
  static async open(path: string): Promise<ObjectStore> {
    const whole = resolve(path)
    await prepare(whole)
    return new ObjectStore(whole)
  }

  has(id: Digest): boolean {
    return this.loose.has(id) || this.packs().some(pack => pack.has(id))
  }

  /** `unknown-blob` when it is not here; `store-corrupt` when it is and has changed. */
  read(id: Digest, kind: ObjectKind = 'blob'): Buffer {
    if (id === emptyTree || id === emptyBlob) return Buffer.alloc(0)
    const found = this.readAny(id)
    if (found.kind !== kind) throw damaged(id, this.path, `it is a ${found.kind}, not a ${kind}`)
    return found.content
  }

  /** The same, whichever kind it is. */
  readAny(id: Digest): Found {
    const recent = this.recent.get(id)
    if (recent !== undefined) return recent
    checkId(id)
    const found = this.#find(id) ?? this.#findAfresh(id)
    if (found !== undefined) {
      this.recent.add(id, checkContent(id, found, this.path))
      return found
    }
    throw new RathError(
      'unknown-blob',
      `There is no object ${id} in ${this.path}. It was pruned, or kept in another store.`,
      { data: { id } },
    )
  }

  /** Keeps one object; nothing is written when it is here. */
  put(kind: ObjectKind, content: Uint8Array): Digest {
    const id = idOf(kind, content)
    if (!this.keepYoung(id)) this.loose.write(id, kind, content)
    return id
  }

  /** Whether it is here; if so it stays a while, also when a `prune` is under way. */
  keepYoung(id: Digest): boolean {
    if (this.loose.has(id)) return this.loose.freshen(id)
    return this.#packOf(id)?.freshen() ?? false
  }

  packWriter(options: { readonly compress?: boolean } = {}): PackWriter {
    return new PackWriter(this.#packFolder, options)
  }

  /** The packs there are now: the folder is read again when something was added or removed. */
  packs(): readonly Pack[] {
    const found = statSync(this.#packFolder, { bigint: true, throwIfNoEntry: false })
    const seen = String(found?.mtimeNs)
    if (seen !== this.#packsSeen) this.#loadPacks(seen)
    return this.#packs
  }

  /** Lets go of open files. It can be used again. */
  close(): void {
    for (const pack of this.#packs) pack.close()
    this.#packs = []
    this.#packsSeen = ''
    this.recent.clear()
  }

  #find(id: Digest): Found | undefined {
    const loose = this.loose.read(id)
    if (loose !== undefined) return loose
    try {
      return this.#packOf(id)?.read(id)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      // A prune has just put its objects into another pack.
      this.#loadPacks('')
      return this.#packOf(id)?.read(id)
    }
  }

  /** The time of a folder goes in steps: a pack that came in the same step as the last look was not seen. */
  #findAfresh(id: Digest): Found | undefined {
    this.#loadPacks('')
    return this.#find(id)
  }

  #packOf(id: Digest): Pack | undefined {
    return this.packs().find(pack => pack.has(id))
  }

  #loadPacks(seen: string): void {
    const open = new Map(this.#packs.map(pack => [pack.path, pack]))
    const names = existsSync(this.#packFolder) ? readdirSync(this.#packFolder) : []
    const packs: Pack[] = []
    for (const name of names.filter(name => /^pack-.*\.idx$/.test(name))) {
      const path = join(this.#packFolder, name.replace(/\.idx$/, '.pack'))
      try {
        packs.push(open.get(path) ?? new Pack(path))
        open.delete(path)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
    for (const gone of open.values()) gone.close()
    this.#packs = packs
    this.#packsSeen = seen
  }
}

const config = `[core]
\trepositoryformatversion = 1
\tfilemode = true
\tbare = true
[extensions]
\tobjectformat = sha256
`

async function prepare(path: string): Promise<void> {
  const configPath = join(path, 'config')
  if (existsSync(configPath)) {
    if (readFileSync(configPath, 'utf8').includes('objectformat = sha256')) return
    throw new RathError(
      'store-foreign',
      `${path} holds something else than a store of files: its config does not say "objectformat = sha256". Give another folder.`,
    )
  }
  await mkdir(join(path, 'objects', 'pack'), { recursive: true, mode: 0o700 })
  await mkdir(join(path, 'refs'), { recursive: true, mode: 0o700 })
  await writeWhole(join(path, 'HEAD'), 'ref: refs/heads/main\n')
  await writeWhole(configPath, config)
}

async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${newId()}`
  await writeFile(temporary, text, { mode: 0o600 })
  await rename(temporary, path)
}
