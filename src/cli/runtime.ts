import { existsSync } from 'node:fs'
import { openStore } from '../run/open-store.ts'
import { defaultStoreUrl } from '../store/open.ts'
import type { Store } from '../store/spec.ts'
import type { StoreOption } from './command.ts'
import { UsageError } from './errors.ts'

/** The address of the store that a command works on. */
export function storeAddress({ store }: StoreOption): string {
  return store ?? (process.env.OPENRATH_STORE || defaultStoreUrl)
}

/** Opens the store to look into. One that is not there yet is said to be so, and not made. */
export async function openToRead(options: StoreOption): Promise<Store> {
  const path = missingStore(options)
  if (path !== undefined) {
    throw new UsageError(
      `there is no store at ${path} yet. Run something first (rath run FILE), or say where it is with --store.`,
    )
  }
  return openStore(storeAddress(options))
}

/** The file of a store that is not there yet; undefined when it is, or is no file. */
export function missingStore(options: StoreOption): string | undefined {
  const path = /^sqlite:(.+)$/.exec(storeAddress(options))?.[1]
  return path === undefined || existsSync(path) ? undefined : path
}
