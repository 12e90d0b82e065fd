import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
} from 'node:fs'
import { platformOf } from '../../base/platform.ts'
import { nameOf, pathIn } from './names.ts'

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** Undefined until somebody asks. */
let canHold: boolean | undefined

/**
 * A folder held open. On Linux what is done to its entries goes through the open folder, so that nobody who swaps one of its parents for a link in
 * that moment can lead it anywhere else. Elsewhere links are looked for first, which leaves that moment open.
 */
export class OpenFolder implements Disposable {
  /** Stands before the names of its entries in calls to the file system. */
  readonly base: string
  readonly #file: number

  private constructor(path: string | Buffer, held: boolean) {
    this.#file = openSync(path, flags)
    this.base = held ? `/proc/self/fd/${this.#file}` : path.toString()
  }

  /** `path` is a real path. */
  static at(path: string | Buffer): OpenFolder {
    canHold ??= platformOf().proc && existsSync('/proc/self/fd')
    return new OpenFolder(path, canHold)
  }

  /** Throws when it is a link, is no folder, or is not there. */
  child(name: string): OpenFolder {
    const path = pathIn(this.base, name)
    const held = this.base.startsWith('/proc/self/fd/')
    if (!held && !lstatSync(path).isDirectory()) {
      throw Object.assign(new Error(`${path} is no folder`), { code: 'ENOTDIR' })
    }
    return new OpenFolder(path, held)
  }

  /** Its names, all but `.` and `..`. */
  names(): string[] {
    return namesIn(this.base)
  }

  pathOf(name: string): string | Buffer {
    return pathIn(this.base, name)
  }

  /** Who is to own what is made in it, where that is not who makes it: root works in a folder of somebody else. */
  get owner(): { readonly uid: number; readonly gid: number } | undefined {
    if (process.geteuid?.() !== 0) return undefined
    const { uid, gid } = fstatSync(this.#file)
    return uid === 0 ? undefined : { uid, gid }
  }

  chown({ uid, gid }: { readonly uid: number; readonly gid: number }): void {
    fchownSync(this.#file, uid, gid)
  }

  chmod(mode: number): void {
    fchmodSync(this.#file, mode)
  }

  [Symbol.dispose](): void {
    closeSync(this.#file)
  }
}

function namesIn(path: string): string[] {
  return listFolder(path).names
}

/** The same; `isText` when all of them are, so that none needs a look before it is part of a path. */
export function listFolder(path: string): { readonly names: string[]; readonly isText: boolean } {
  const names = readdirSync(path)
  if (!names.some(name => name.includes('\uFFFD'))) return { names, isText: true }
  return { names: readdirSync(path, { encoding: 'buffer' }).map(nameOf), isText: false }
}

/** What the system says of a path that another process has just removed or replaced. */
export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}

export function isForbidden(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM'
}
