import { join } from 'node:path'
import { isPlainObject } from '../base/json.ts'
import { processSurroundings, type Surroundings } from '../model/surroundings.ts'
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

/**
 * Every key in the config and credentials files that could be used from here, whichever of them is. Named by file and place.
 * A file that cannot be read or is no JSON gives no key to anybody; whoever asks for a model hears about it.
 */
export function configSecrets({ env, cwd, home, files }: Surroundings): Record<string, string> {
  const folders = [
    env.OPENRATH_HOME?.replace(/^~(?=\/|$)/, home),
    join(cwd, '.openrath'),
    join(home, '.openrath'),
  ]
  const secrets: Record<string, string> = {}
  for (const folder of folders) {
    if (!folder) continue
    for (const name of ['config.json', 'credentials.json']) {
      collect(contentOf(join(folder, name), files), name, secrets)
    }
  }
  return secrets
}

function contentOf(path: string, files: Surroundings['files']): unknown {
  try {
    return JSON.parse(files.read(path) ?? 'null')
  } catch {
    return undefined
  }
}

function collect(value: unknown, place: string, secrets: Record<string, string>): void {
  if (!isPlainObject(value)) return
  for (const [name, member] of Object.entries(value)) {
    const here = `${place}.${name}`
    if (typeof member === 'string' && /key|token|secret|passw/i.test(name)) secrets[here] = member
    else collect(member, here, secrets)
  }
}
