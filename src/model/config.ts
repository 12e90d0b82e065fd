import { join } from 'node:path'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type Problem, refuse } from '../base/json.ts'
import { readCredentials, withKey } from './credentials.ts'
import { type Fields, numberAt, objectAt, parseObject, textAt, urlAt } from './json-file.ts'
import {
  isAzure,
  isProviderKind,
  ownAddress,
  type ProviderKind,
  printable,
  providerKinds,
  sameHost,
} from './kind.ts'
import { type ConfigTexts, ownFolder, type ProjectConfig, projectConfig, textsIn } from './project-config.ts'
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

/**
 * Reads `config.json` and `credentials.json` of `OPENRATH_HOME`, or of `.openrath` in the current folder where there is a config, or of
 * `.openrath` at home. None needs to exist. One in the current folder is refused with `config-untrusted` until the user has agreed to it,
 * and passed over once the user has said no.
 */
export function readConfig(surroundings: Surroundings): Config {
  const project = projectConfig(surroundings)
  if (project?.answer === 'agreed') return parseConfig(project.folder, project.texts, surroundings)
  if (project && project.answer === undefined) throw untrusted(project)
  const folder = ownFolder(surroundings)
  return parseConfig(folder, textsIn(folder, surroundings), surroundings)
}

/** For those who do without the config: one that nobody has agreed to says nothing. */
export function readAgreedConfig(surroundings: Surroundings): Config {
  const project = projectConfig(surroundings)
  return project && project.answer === undefined
    ? parseConfig(project.folder, { config: undefined, credentials: undefined }, surroundings)
    : readConfig(surroundings)
}

function parseConfig(folder: string, texts: ConfigTexts, surroundings: Surroundings): Config {
  const path = join(folder, 'config.json')
  const raw = parseObject(path, texts.config) ?? {}
  const keys = readCredentials(join(folder, 'credentials.json'), texts.credentials, surroundings)
  const problems: Problem[] = []
  const llm = objectAt(raw, 'llm', 'llm', problems)
  const listed = objectAt(llm, 'providers', 'llm.providers', problems)
  const written = Object.keys(listed).map(name =>
    readProvider(name, objectAt(listed, name, `llm.providers.${name}`, problems), path, problems),
  )
  const defaultProvider = textAt(llm, 'default_provider', 'llm.default_provider', problems)
  refuse('config-malformed', `${path} cannot be used`, problems)
  warnIfExposed(path, written, surroundings)
  const providers = written.map(provider => withKey(provider, keys))
  refuse('config-malformed', `${path} cannot be used`, providers.flatMap(misnamed))
  return {
    folder,
    paths: [path, keys.path],
    ...(defaultProvider !== undefined && { defaultProvider }),
    providers,
    raw,
  }
}

/** What a project's config would decide, one line each, for whoever is asked to agree to it. Keys are not shown. */
export function decisionsOf({ folder, texts }: ProjectConfig, surroundings: Surroundings): string[] {
  const config = parseConfig(folder, texts, { ...surroundings, warn: () => {} })
  const presets = isPlainObject(config.raw.memory) ? config.raw.memory.providers : undefined
  // The one that is used comes last, next to the question, however many others there are.
  const providers = config.providers.toSorted(
    (a, b) => Number(a.name === config.defaultProvider) - Number(b.name === config.defaultProvider),
  )
  return [
    ...Object.entries(isPlainObject(presets) ? presets : {}).map(([name, preset]) => {
      const { backend_kind: backend = 'local', path } = isPlainObject(preset) ? preset : {}
      return `memory ${show(name)}: ${show(backend)}${path === undefined ? '' : ` in ${show(path)}`}`
    }),
    ...providers.map(provider => describe(provider, config)),
  ]
}

function describe(
  { name, kind, model, baseURL, apiKey }: ConfigProvider,
  { defaultProvider }: Config,
): string {
  const isDefault = name === defaultProvider ? ' (the default)' : ''
  const host = URL.parse(baseURL ?? ownAddress(kind) ?? '')?.host ?? 'the address in your environment'
  const key =
    apiKey === undefined ? 'your key for that host' : apiKey === '' ? 'no key' : 'a key from these files'
  return `provider ${show(name)}${isDefault}: ${model ? `${show(model)}, ` : ''}sent to ${host} with ${key}`
}

function untrusted(project: ProjectConfig): RathError {
  return new RathError(
    'config-untrusted',
    `${project.path} came with this folder, and it could send what you say and your files to a server of its choice. ` +
      'See what it decides, and agree to it once, with: npx rath trust (rath trust --yes where there is no terminal). ' +
      'With rath trust --no your own config is used instead.',
    { data: { path: project.path, digest: project.digest } },
  )
}

/** A provider that is named after a kind is of that kind, and at its own address: `openai/gpt-5.5` must be what it says. */
function misnamed({ name, kind, baseURL }: ConfigProvider): Problem[] {
  const path = `llm.providers.${name}`
  if (!/^[ -~]+$/.test(name) || name.includes('/')) {
    return [
      {
        path,
        message: 'a name has printable ASCII characters without a slash, since it stands before the model',
      },
    ]
  }
  const plainName = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  const taken = providerKinds.find(one => one.replace('-', '') === plainName)
  if (taken === undefined || (name === kind && isAtHome(kind, baseURL))) return []
  const where = baseURL === undefined ? '' : ` at ${printable(baseURL)}`
  const message = `is named like the kind ${taken}, and is ${kind}${where}. Call it otherwise, such as "my-${taken}"`
  return [{ path, message }]
}

function isAtHome(kind: ProviderKind, baseURL: string | undefined): boolean {
  if (baseURL === undefined || kind === 'openai-compatible') return true
  return kind === 'azure' ? isAzure(baseURL) : sameHost(baseURL, ownAddress(kind))
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
