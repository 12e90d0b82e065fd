import { RathError, show } from '../base/errors.ts'
import { type Problem, refuse } from '../base/json.ts'
import { objectAt, parseObject, textAt, urlAt } from './json-file.ts'
import { printable, sameHost } from './kind.ts'
import type { Surroundings } from './surroundings.ts'

export interface Credentials {
  readonly path: string
  readonly providers: Readonly<Record<string, { readonly apiKey?: string; readonly baseURL?: string }>>
}

/** `{ "providers": { name: { "api_key", "base_url" } } }`: a key that is not for the provider's own host names its host. */
export function readCredentials(
  path: string,
  text: string | undefined,
  surroundings: Surroundings,
): Credentials {
  const raw = parseObject(path, text)
  if (raw === undefined) return { path, providers: {} }
  const mode = surroundings.files.stat(path)?.mode
  if (mode !== undefined && (mode & 0o077) !== 0) {
    throw new RathError(
      'credentials-exposed',
      `${path} can be read by others (mode ${mode.toString(8)}), so its keys are not used. Run: chmod 600 ${path}`,
      { data: { path } },
    )
  }
  const problems: Problem[] = []
  const listed = objectAt(raw, 'providers', 'providers', problems)
  const providers: Record<string, { apiKey?: string; baseURL?: string }> = {}
  for (const name of Object.keys(listed)) {
    const fields = objectAt(listed, name, `providers.${name}`, problems)
    const apiKey = textAt(fields, 'api_key', `providers.${name}.api_key`, problems)
    const baseURL = urlAt(fields, `providers.${name}.base_url`, problems)
    providers[name] = { ...(apiKey !== undefined && { apiKey }), ...(baseURL !== undefined && { baseURL }) }
  }
  refuse('config-malformed', `${path} cannot be used`, problems)
  return { path, providers }
}

interface Keyed {
  readonly name: string
  readonly apiKey?: string
  readonly baseURL?: string
  readonly source: string
}

/**
 * Adds the key of `credentials.json`. Whoever can change `config.json` must not be able to send that key elsewhere, so it goes
 * to the host written beside it, or to the provider's own.
 */
export function withKey<T extends Keyed>(provider: T, { path, providers }: Credentials): T {
  const kept = Object.hasOwn(providers, provider.name) ? providers[provider.name] : undefined
  if (kept?.apiKey === undefined || provider.apiKey !== undefined) return provider
  if (provider.baseURL !== undefined && !sameHost(provider.baseURL, kept.baseURL)) {
    throw new RathError(
      'credentials-mixed',
      `The key for ${show(provider.name)} lies in ${path} and the address ${printable(provider.baseURL)} in ${provider.source}, and a key goes only to an address written beside it. Add "base_url" to providers.${provider.name} in ${path}.`,
      { data: { key: path, host: provider.source } },
    )
  }
  return {
    ...provider,
    apiKey: kept.apiKey,
    ...(kept.baseURL !== undefined && { baseURL: kept.baseURL }),
    source: `${path} (providers.${provider.name})`,
  }
}
