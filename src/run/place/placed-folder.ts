import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { SandboxSpec } from '../../sandbox/spec.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { WorkedIn } from '../../session/fold.ts'
import { identityOf } from '../../session/identity.ts'

/** The folder of this machine that a placement stands for, as it was when it was first used. */
export interface PlacedFolder {
  /** Its absolute name, links in it as they were written. */
  readonly path: string
  /** Where that led; absent while nothing was opened there. */
  readonly real?: string
  /** What tells it from another folder that is later made under this name. */
  readonly id?: string
  /** Ids of folders that sessions of this placement worked in before somebody said that the project was moved. */
  readonly was?: readonly string[]
}

/** The folder that a spec names, of a backend whose workspaces are folders of this machine. */
export function folderIn(spec: SandboxSpec | undefined): string | undefined {
  const path = typeof spec === 'string' ? spec : spec?.path
  return typeof path === 'string' && path !== '' ? path : undefined
}

/** The same spec with another folder. */
export function specIn(spec: SandboxSpec | undefined, folder: string): SandboxSpec {
  return typeof spec === 'object' ? { ...spec, path: folder } : folder
}

/**
 * Tells folders apart that have one name after the other: the number that the file system gave it and the time at which it was made, since
 * numbers are given again. Not the device, whose number a restart of the machine may change. Undefined where no folder is.
 */
export function folderId(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found?.isDirectory() ? `${found.ino}-${found.birthtimeNs}` : undefined
}

/** What the kernel calls the file system of layers that container images are unpacked on. */
const overlay = 0x794c7630

/** The id of a folder that stays: one in a lower layer is copied up by its first change, and is another one from then on. */
function settledId(path: string): string | undefined {
  try {
    if (statfsSync(path).type === overlay) chmodSync(path, statSync(path).mode & 0o7777)
  } catch {
    // Who may not change it does not move it to another layer either.
  }
  return folderId(path)
}

/** The folder at a path, as it is written down. */
export function folderAt(path: string): Required<Pick<PlacedFolder, 'path' | 'real' | 'id'>> | undefined {
  const id = settledId(path)
  return id === undefined ? undefined : { path: resolve(path), real: realpathSync.native(path), id }
}

/**
 * Which folder each placement stands for. Kept outside every workspace, by the identity of the chunk that placed the session, so that a
 * run which goes on in another process finds the same; without a place to keep it, for this process.
 */
export class PlacedFolders {
  readonly #home: string | undefined
  readonly #known = new Map<Digest, PlacedFolder>()

  constructor(home: string | undefined) {
    this.#home = home
  }

  of(placed: Chunk<'placement'>): PlacedFolder | undefined {
    const identity = identityOf(placed)
    const known = this.#known.get(identity) ?? this.#read(identity)
    if (known !== undefined) this.#known.set(identity, known)
    return known
  }

  /** The first to say so decides. */
  claim(placed: Chunk<'placement'>, folder: PlacedFolder): PlacedFolder {
    const identity = identityOf(placed)
    const stands = this.of(placed) ?? this.#first(identity, folder)
    // What was named before it was opened has no id yet.
    if (stands.id === undefined && folder.id !== undefined) return this.move(placed, folder)
    this.#known.set(identity, stands)
    return stands
  }

  move(placed: Chunk<'placement'>, folder: PlacedFolder): PlacedFolder {
    const identity = identityOf(placed)
    this.#known.set(identity, folder)
    if (this.#home !== undefined) {
      const temporary = this.#write(folder)
      renameSync(temporary, join(this.#home, identity))
    }
    return folder
  }

  has(placement: Digest): boolean {
    return this.#home !== undefined && existsSync(join(this.#home, placement))
  }

  /** Those that are kept. */
  placements(): Digest[] {
    try {
      return this.#home === undefined
        ? []
        : readdirSync(this.#home).filter(name => /^[0-9a-f]{64}$/.test(name))
    } catch {
      return []
    }
  }

  forget(placement: Digest): void {
    this.#known.delete(placement)
    if (this.#home !== undefined) rmSync(join(this.#home, placement), { force: true })
  }

  #first(identity: Digest, folder: PlacedFolder): PlacedFolder {
    if (this.#home === undefined) return folder
    const temporary = this.#write(folder)
    try {
      linkSync(temporary, join(this.#home, identity))
      return folder
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      return this.#read(identity) ?? folder
    } finally {
      rmSync(temporary, { force: true })
    }
  }

  /** Whole before it gets its name. */
  #write(folder: PlacedFolder): string {
    const home = this.#home as string
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const temporary = join(home, `${newId()}.new`)
    writeFileSync(temporary, JSON.stringify(folder), { mode: 0o600 })
    return temporary
  }

  #read(identity: Digest): PlacedFolder | undefined {
    if (this.#home === undefined) return undefined
    let text: string
    try {
      text = readFileSync(join(this.#home, identity), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    return JSON.parse(text) as PlacedFolder
  }
}

/** What is known of where a session worked, and where it would work now. */
export interface Whereabouts {
  /** What is written down of its placement. */
  readonly record: PlacedFolder | undefined
  /** What its own record says, which goes with it to other machines. */
  readonly worked: WorkedIn | undefined
  /** Where it would work. */
  readonly path: string
  /** A folder that somebody said the project was moved to. */
  readonly movedTo?: string | undefined
}

/** Refuses a folder that a session did not begin in. One of which nothing is known yet begins here. */
export function checkWhereabouts({ record, worked, path, movedTo }: Whereabouts): void {
  const began = record?.id === undefined ? worked : { path: record.real ?? record.path, id: record.id }
  if (began === undefined) return
  const here = folderId(path)
  const isMoved = here !== undefined && movedTo === here
  if (here !== began.id && !isMoved) throw elsewhere(began.path, path, here !== undefined)
  // Both are known and do not agree: the session came here from somebody who worked in another folder.
  if (worked && worked.id !== here && !isMoved && !record?.was?.includes(worked.id)) {
    throw elsewhere(worked.path, path, true)
  }
}

/** Names both folders and the ways out. */
export function elsewhere(began: string, path: string, isThere: boolean): RathError {
  const here = realOf(path)
  const seen = !isThere
    ? `there is no folder ${here} here`
    : began === here
      ? `the folder that is there now is another one: it was made again since, or this is another machine`
      : `here it would work in ${here}, which is another folder`
  return new RathError(
    'workspace-elsewhere',
    `This session began in ${began}, and ${seen}. Nothing was changed. ` +
      `Go on in the folder it began in (cd ${began}); or bring its files to a folder you name, with runtime.checkout(session, folder) or rath checkout SESSION FOLDER, and place it there with to(); ` +
      'or, if you have moved the project, say so: runtime.resume(run, workflow, { movedTo: folder }) or rath resume RUN --moved-to FOLDER.',
    { data: { began, here } },
  )
}

/** What is not there is taken as written. */
export function realOf(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return resolve(path)
  }
}
