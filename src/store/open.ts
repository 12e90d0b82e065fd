import { RathError, show } from '../base/errors.ts'
import type { StoreDriver } from './driver.ts'
import { secretsOf } from './redact.ts'
import type { Store, StoreOptions } from './spec.ts'
import { createStore } from './store.ts'

/** Where the store of a project lies unless it is told otherwise. */
export const defaultStoreUrl = 'sqlite:.openrath/rath.db'

/** Opens a store by its address: `memory:`, `sqlite:PATH` or `postgres://…`. Drivers load when first used. */
export async function openStore(url: string = defaultStoreUrl, options: StoreOptions = {}): Promise<Store> {
  const secrets = options.secrets ?? secretsOf(process.env)
  checkOptions(options)
  return createStore(await openDriver(url, options), { ...options, secrets })
}

async function openDriver(url: string, options: StoreOptions): Promise<StoreDriver> {
  if (typeof url === 'string') {
    if (url === 'memory:') return (await import('./drivers/memory/driver.ts')).memoryDriver()
    if (url.startsWith('sqlite:') && url.length > 'sqlite:'.length) {
      return (await import('./drivers/sqlite/driver.ts')).sqliteDriver(url.slice('sqlite:'.length), options)
    }
    if (url.startsWith('postgres://') || url.startsWith('postgresql://')) {
      return (await import('./drivers/postgres/driver.ts')).postgresDriver(url, options)
    }
  }
  throw new RathError(
    'invalid-argument',
    `${show(withoutPassword(url))} is not the address of a store: use memory:, sqlite:PATH or postgres://USER@HOST/DATABASE.`,
  )
}

/** A mistyped address may hold a password, too. */
function withoutPassword(url: unknown): unknown {
  return typeof url === 'string' ? url.replace(/(:\/*).*@/, '$1…@') : url
}

function checkOptions({ durability, busyTimeout }: StoreOptions): void {
  if (durability !== undefined && durability !== 'normal' && durability !== 'full') {
    throw new RathError('invalid-argument', `durability is 'normal' or 'full', not ${show(durability)}.`)
  }
  if (busyTimeout !== undefined && !(busyTimeout >= 0)) {
    throw new RathError(
      'invalid-argument',
      `busyTimeout is milliseconds, at least 0, not ${show(busyTimeout)}.`,
    )
  }
}
