import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import type { Digest } from '../../base/digest.ts'
import { newId } from '../../base/ids.ts'
import { orNothing } from '../host/or-nothing.ts'
import { damaged, type Found, inflate, type ObjectKind } from './object.ts'
import { zlibStored } from './zlib-stored.ts'

/** Objects in a file each, as git lays them out: `objects/ab/cdef…`. */
export class LooseObjects {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** An empty file is what a power cut leaves: it counts as missing, and is written again. */
  has(id: Digest): boolean {
    return (statSync(this.pathOf(id), orNothing)?.size ?? 0) > 0
  }

  /** Makes it young again, so that `prune` in another process does not take it from whoever is about to use it. False when it is gone. */
  freshen(id: Digest): boolean {
    try {
      const now = new Date()
      utimesSync(this.pathOf(id), now, now)
      return true
    } catch {
      return false
    }
  }

  read(id: Digest): Found | undefined {
    const path = this.pathOf(id)
    let bytes: Buffer
    try {
      bytes = readFileSync(path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    const whole = inflate(id, bytes, path)
    const end = whole.indexOf(0)
    const [kind, length] = whole.toString('latin1', 0, Math.max(0, end)).split(' ')
    const content = whole.subarray(end + 1)
    if ((kind !== 'blob' && kind !== 'tree') || Number(length) !== content.length) {
      throw damaged(id, path, 'it does not begin as an object does')
    }
    return { kind, content }
  }

  write(id: Digest, kind: ObjectKind, content: Uint8Array): void {
    const path = this.pathOf(id)
    const whole = Buffer.concat([Buffer.from(`${kind} ${content.length}\0`), content])
    const bytes = isWorthCompressing(kind, whole.length)
      ? deflateSync(whole, { level: 1 })
      : zlibStored(whole)
    const temporary = join(this.#folder, `tmp_obj_${newId()}`)
    try {
      writeFile(temporary, bytes)
      try {
        renameSync(temporary, path)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
        renameSync(temporary, path)
      }
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }

  /** Ids of one of the 256 folders. */
  list(beginning: string): Digest[] {
    try {
      return readdirSync(join(this.#folder, beginning)).map(end => beginning + end)
    } catch {
      return []
    }
  }

  pathOf(id: Digest): string {
    return `${this.#folder}/${id.slice(0, 2)}/${id.slice(2)}`
  }
}

/** Not what takes one block of the disk in any case, nor a tree, which is digests for the most part. */
function isWorthCompressing(kind: ObjectKind, length: number): boolean {
  return length > (kind === 'tree' ? 65_536 : 4_000)
}

function writeFile(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx', 0o400)
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
  } finally {
    closeSync(file)
  }
}

/** All of `objects/00` to `objects/ff`. */
export const looseFolders: readonly string[] = Array.from({ length: 256 }, (_, n) =>
  n.toString(16).padStart(2, '0'),
)
