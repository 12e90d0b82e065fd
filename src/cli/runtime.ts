import { constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isAccessible } from '../base/access.ts'
import { openStore } from '../run/open-store.ts'
import { defaultStoreUrl } from '../store/open.ts'
import type { Store } from '../store/spec.ts'
import type { StoreOption } from './command.ts'
import { UsageError } from './errors.ts'

/** The address of the store that a command works on. */
export function storeAddress({ store }: StoreOption): string {
  return store ?? (process.env.OPENRATH_STORE || defaultStoreUrl)
}

/** Opens the store to look into. One that is not there yet is said to be so, and not made; one that may only be read is only read. */
export async function openToRead(options: StoreOption): Promise<Store> {
  const path = missingStore(options)
  if (path !== undefined) {
    throw new UsageError(
      `there is no store at ${path} yet. Run something first (rath run FILE), or say where it is with --store.`,
    )
  }
  const address = storeAddress(options)
  return openStore(address, { readOnly: isLocked(fileOf(address)) })
}

/** The file of a store that is not there yet; undefined when it is, or is no file. */
export function missingStore(options: StoreOption): string | undefined {
  const path = fileOf(storeAddress(options))
  return path === undefined || existsSync(path) ? undefined : path
}

function fileOf(address: string): string | undefined {
  return /^sqlite:(.+)$/.exec(address)?.[1]
}

/** SQLite writes beside its file, too. */
function isLocked(path: string | undefined): boolean {
  return path !== undefined && [path, dirname(path)].some(one => !isAccessible(one, constants.W_OK))
}
