import { configSecrets } from '../model/config-secrets.ts'
import { processSurroundings } from '../model/surroundings.ts'
import { defaultStoreUrl, openStore as open } from '../store/open.ts'
import { secretsOf } from '../store/redact.ts'
import type { Store, StoreOptions } from '../store/spec.ts'

/**
 * Opens a store by its address: `memory:`, `sqlite:PATH` (the default, `.openrath/rath.db` in the current folder) or `postgres://…`.
 * Keys in the environment and in the config files are never written to it, unless `secrets` says otherwise.
 */
export function openStore(url: string = defaultStoreUrl, options: StoreOptions = {}): Promise<Store> {
  return open(url, { ...options, secrets: options.secrets ?? knownSecrets() })
}

/** The keys of the environment and of the config files. */
export function knownSecrets(): Record<string, string> {
  return { ...configSecrets(processSurroundings()), ...secretsOf(process.env) }
}
