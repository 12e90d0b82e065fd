import { join } from 'node:path'
import { RathError, show } from '../base/errors.ts'
import { type Problem, refuse } from '../base/json.ts'
import { readCredentials, withKey } from './credentials.ts'
import { type Fields, numberAt, objectAt, readObject, textAt, urlAt } from './json-file.ts'
import { isProviderKind, type ProviderKind, providerKinds } from './kind.ts'
import type { Surroundings } from './surroundings.ts'

/** One entry of `llm.providers`, with its key where one is written down for it. */
export interface ConfigProvider {
  readonly name: string
  readonly kind: ProviderKind
  readonly model?: string
  /** Empty when the file says that no key is to be sent. */
  readonly apiKey?: string
  readonly baseURL?: string
  readonly temperature?: number
  readonly maxOutputTokens?: number
  /** Which file, and where in it. */
  readonly source: string
}

/** What the config file says about models. `raw` is the whole file, with keys we do not know. */
export interface Config {
  readonly folder: string
  /** The files looked at, whether or not they were there. */
  readonly paths: readonly string[]
  readonly defaultProvider?: string
  readonly providers: readonly ConfigProvider[]
  readonly raw: Readonly<Record<string, unknown>>
}

/** Where config lies: `OPENRATH_HOME`, or `.openrath` in the current folder if there is one, or `.openrath` at home. */
export function configFolder({ env, cwd, home, files }: Surroundings): string {
  const named = env.OPENRATH_HOME
  if (named) {
    const folder = named.replace(/^~(?=\/|$)/, home)
    if (files.stat(folder)?.isDirectory === false) {
      throw new RathError(
        'config-malformed',
        `OPENRATH_HOME is ${show(named)}, which is a file. Set it to a folder, or unset it to use ${join(home, '.openrath')}.`,
      )
    }
    return folder
  }
  const here = join(cwd, '.openrath')
  return files.stat(here)?.isDirectory ? here : join(home, '.openrath')
}

/** Reads `config.json` and `credentials.json` of the folder that counts. Neither needs to exist. */
export function readConfig(surroundings: Surroundings): Config {
  const folder = configFolder(surroundings)
  const path = join(folder, 'config.json')
  const raw = readObject(path, surroundings) ?? {}
  const keys = readCredentials(join(folder, 'credentials.json'), surroundings)
  const problems: Problem[] = []
  const llm = objectAt(raw, 'llm', 'llm', problems)
  const listed = objectAt(llm, 'providers', 'llm.providers', problems)
  const providers = Object.keys(listed).map(name =>
    readProvider(name, objectAt(listed, name, `llm.providers.${name}`, problems), path, problems),
  )
  const defaultProvider = textAt(llm, 'default_provider', 'llm.default_provider', problems)
  refuse('config-malformed', `${path} cannot be used`, problems)
  warnIfExposed(path, providers, surroundings)
  return {
    folder,
    paths: [path, keys.path],
    ...(defaultProvider !== undefined && { defaultProvider }),
    providers: providers.map(provider => withKey(provider, keys)),
    raw,
  }
}

/** A provider by name, or the default one: `llm.default_provider`, or the only one there is. */
export function findConfigProvider(name: string | undefined, surroundings: Surroundings): ConfigProvider {
  const config = readConfig(surroundings)
  const wanted =
    name ?? config.defaultProvider ?? (config.providers.length === 1 ? config.providers[0]?.name : undefined)
  const found = config.providers.find(provider => provider.name === wanted)
  if (found) return found
  const available = config.providers.map(provider => show(provider.name)).join(', ') || 'none'
  throw new RathError(
    'unknown-provider',
    wanted === undefined
      ? `${config.paths[0]} names no default provider. Set "llm.default_provider" to one of: ${available}.`
      : `${config.paths[0]} has no provider ${show(wanted)}. It has: ${available}. Add it under "llm.providers".`,
    { data: { path: config.paths[0] as string } },
  )
}

function readProvider(name: string, fields: Fields, path: string, problems: Problem[]): ConfigProvider {
  const at = `llm.providers.${name}`
  const kind = textAt(fields, 'provider_kind', `${at}.provider_kind`, problems) ?? 'openai'
  if (!isProviderKind(kind)) {
    problems.push({
      path: `${at}.provider_kind`,
      message: `${show(kind)} is not one of ${providerKinds.join(', ')}`,
    })
  }
  const model = textAt(fields, 'model', `${at}.model`, problems)
  const apiKey = fields.api_key === null ? '' : textAt(fields, 'api_key', `${at}.api_key`, problems)
  const baseURL = urlAt(fields, `${at}.base_url`, problems)
  const temperature = numberAt(fields, 'temperature', `${at}.temperature`, problems)
  const maxOutputTokens = numberAt(fields, 'max_tokens', `${at}.max_tokens`, problems)
  return {
    name,
    kind: kind as ProviderKind,
    source: `${path} (${at})`,
    ...(model !== undefined && { model }),
    ...(apiKey !== undefined && { apiKey }),
    ...(baseURL !== undefined && { baseURL }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  }
}

function warnIfExposed(path: string, providers: readonly ConfigProvider[], surroundings: Surroundings): void {
  const mode = surroundings.files.stat(path)?.mode
  if (mode === undefined || (mode & 0o004) === 0 || !providers.some(provider => provider.apiKey)) return
  surroundings.warn(
    `${path} holds API keys and everybody on this machine can read it. Run: chmod 600 ${path}`,
  )
}
