import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import type { Digest } from '../../base/digest.ts'
import { isBusy } from '../../base/sqlite/errors.ts'
import { openDatabase } from '../../base/sqlite/open.ts'
import { homeFolder, privateFolder } from './home.ts'
import { folderId } from './placed-folder.ts'

/** Files that are being taken back into a folder: the tree before and the one after. */
export interface TakingBack {
  readonly from: Digest
  readonly to: Digest
}

/**
 * Lets one process at a time take files back into a folder. It is a lock of the system on a file, so the death of its holder releases it. The
 * file lies outside every workspace, where no sandbox can write or replace it, and is named after the folder's identity, whatever path led there.
 */
export class FolderLock implements Disposable {
  readonly #db: DatabaseSync
  readonly #note: string
  /** What a holder that died was in the middle of. */
  left: TakingBack | undefined

  private constructor(db: DatabaseSync, note: string) {
    this.#db = db
    this.#note = note
    this.left = readNote(note)
  }

  /** Waits until it is free. */
  static async take(folder: string, kept: string): Promise<FolderLock> {
    const path = join(lockFolder(kept), `${folderId(folder)}.lock`)
    const db = await openDatabase(path)
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          db.exec('BEGIN IMMEDIATE')
          return new FolderLock(db, `${path}.note`)
        } catch (error) {
          if (!isBusy(error)) throw error
          await wait(Math.random() * Math.min(5 + attempt * 2, 50))
        }
      }
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Written before the first file is: whoever comes after a death in the middle finds it. */
  begin(taking: TakingBack): void {
    const temporary = `${this.#note}.new`
    writeFileSync(temporary, JSON.stringify(taking), { mode: 0o600 })
    renameSync(temporary, this.#note)
  }

  done(): void {
    rmSync(this.#note, { force: true })
    this.left = undefined
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }
}

/** One for all runtimes of this user, whatever they keep and wherever; beside what this one keeps where there is no home to write to. */
function lockFolder(kept: string): string {
  try {
    return privateFolder(join(homeFolder(), 'locks'))
  } catch {
    return privateFolder(join(kept, 'locks'))
  }
}

function readNote(path: string): TakingBack | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as TakingBack
  } catch {
    return undefined
  }
}
