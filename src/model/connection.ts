import { RathError, show } from '../base/errors.ts'
import { type Config, type ConfigProvider, readAgreedConfig, readConfig } from './config.ts'
import { type EnvironmentSays, environmentSays } from './environment.ts'
import { guessKind, isAzure, ownAddress, type ProviderKind, printable, sameHost } from './kind.ts'
import { type Provider, secretsOf } from './provider.ts'
import type { Surroundings } from './surroundings.ts'

/** A key and the address it goes to. Both come from one source, so that no source can send another's key elsewhere. */
export interface Connection {
  readonly kind: ProviderKind
  readonly baseURL: string
  /** None is sent when absent. */
  readonly apiKey?: string
  readonly apiVersion?: string
  /** Where the pair was written down, for messages. */
  readonly source: string
}

/** Finds key and address: what the provider says, then the environment, then the config file. */
export function connect(provider: Provider, surroundings: Surroundings): Connection {
  const given = secretsOf(provider)
  const { baseURL } = provider
  const address = baseURL ?? (given.apiKey === undefined ? surroundings.env.OPENAI_BASE_URL : undefined)
  const stated = provider.kind ?? guessKind(provider.model, baseURL)
  const kind = stated === 'openai' && isAzure(address) ? 'azure' : stated
  const says = environmentSays(kind, surroundings.env)
  const search = new Search(kind, says, surroundings)
  const apiVersion = provider.apiVersion ?? says.apiVersion
  const found =
    given.apiKey !== undefined
      ? search.forKey(given.apiKey, baseURL, given.source)
      : baseURL !== undefined
        ? search.forAddress(baseURL, given.source)
        : search.anywhere()
  return { ...found, kind, ...(kind === 'azure' && apiVersion && { apiVersion }) }
}

type Pair = Omit<Connection, 'kind'>

class Search {
  readonly #kind: ProviderKind
  readonly #says: EnvironmentSays
  readonly #surroundings: Surroundings
  readonly #own: string | undefined
  #config: Config | undefined

  constructor(kind: ProviderKind, says: EnvironmentSays, surroundings: Surroundings) {
    this.#kind = kind
    this.#says = says
    this.#surroundings = surroundings
    this.#own = ownAddress(kind)
  }

  /** Somebody gave the key. The address is beside it, or the provider's own. */
  forKey(apiKey: string, baseURL: string | undefined, source: string): Pair {
    const { baseURL: set, hostName } = this.#says
    if (baseURL === undefined && set !== undefined && !sameHost(set, this.#own)) {
      throw this.#mixed(`${source}, which names no baseURL`, `${hostName}=${printable(set)}`)
    }
    const address = baseURL ?? this.#own
    if (address === undefined) {
      throw new RathError(
        'credentials-missing',
        `A provider of kind ${this.#kind} has no address of its own. Give baseURL beside apiKey.`,
      )
    }
    return { baseURL: address, source, ...(apiKey !== '' && { apiKey }) }
  }

  /** Somebody gave the address. A key that belongs elsewhere is not sent to it. */
  forAddress(baseURL: string, source: string): Pair {
    const { apiKey, keyName, baseURL: set } = this.#says
    if (apiKey !== undefined && sameHost(set ?? this.#own, baseURL))
      return { baseURL, apiKey, source: keyName }
    const isFile = source !== 'new Provider(…)'
    if (apiKey !== undefined && (isFile || this.#needsKey(baseURL)))
      throw this.#mixed(keyName, `${source}: ${printable(baseURL)}`)
    if (this.#needsKey(baseURL)) throw this.#missing()
    return { baseURL, source }
  }

  anywhere(): Pair {
    const { apiKey, keyName, baseURL: set, hostName } = this.#says
    const entry = this.#entry()
    if (apiKey !== undefined) {
      const baseURL = set ?? this.#own
      if (set === undefined && entry?.baseURL !== undefined && entry.apiKey === undefined) {
        // The file means this key to go to its address, or tries to get hold of it.
        if (!sameHost(entry.baseURL, this.#own))
          throw this.#mixed(keyName, `${entry.source}: ${printable(entry.baseURL)}`)
      }
      if (baseURL === undefined) throw this.#missing()
      return { baseURL, apiKey, source: keyName }
    }
    if (set !== undefined) {
      if (entry?.apiKey && !sameHost(entry.baseURL ?? this.#own, set))
        throw this.#mixed(entry.source, `${hostName}=${printable(set)}`)
      if (entry?.apiKey) return { baseURL: set, apiKey: entry.apiKey, source: entry.source }
      if (this.#needsKey(set)) throw this.#missing()
      return { baseURL: set, source: hostName }
    }
    const baseURL = entry?.baseURL ?? this.#own
    if (entry?.apiKey && baseURL) return { baseURL, apiKey: entry.apiKey, source: entry.source }
    if (entry?.baseURL && !this.#needsKey(entry.baseURL))
      return { baseURL: entry.baseURL, source: entry.source }
    throw this.#missing()
  }

  /** The entry of the config file that stands for this kind: the default one if it fits, else the first that does. */
  #entry(): ConfigProvider | undefined {
    this.#config ??= readAgreedConfig(this.#surroundings)
    const { providers, defaultProvider } = this.#config
    const fitting = providers.filter(entry => entry.kind === this.#kind)
    return fitting.find(entry => entry.name === defaultProvider) ?? fitting[0]
  }

  #needsKey(baseURL: string): boolean {
    return this.#kind === 'azure' || this.#kind === 'anthropic' || sameHost(baseURL, this.#own)
  }

  #mixed(key: string, host: string): RathError {
    return new RathError(
      'credentials-mixed',
      `The key comes from ${key}, and the address from ${host}. A key is sent only to an address from the same source: write both in one place, or remove one of them. An empty key there sends none.`,
      { data: { kind: this.#kind, key, host } },
    )
  }

  #missing(): RathError {
    const { apiKey, keyName, baseURL, hostName } = this.#says
    const unset = [
      ...(apiKey === undefined ? [keyName] : []),
      ...(baseURL === undefined && this.#own === undefined ? [hostName] : []),
    ]
    // A config that nobody has agreed to may have what is missing, and is refused by name here.
    const { paths, providers } = readConfig(this.#surroundings)
    const listed = providers.map(entry => `${show(entry.name)} (${entry.kind})`).join(', ') || 'none'
    return new RathError(
      'credentials-missing',
      [
        `No credentials for ${this.#kind}. Looked at:`,
        '  new Provider({ apiKey, baseURL }): not given',
        `  the environment: not set: ${unset.join(', ')}`,
        `  ${paths[0]}: llm.providers has ${listed}`,
        `  ${paths[1]}: no key for them`,
        `Set ${unset.join(' and ')}, or add a provider of kind ${this.#kind} with its key to one of the files.`,
      ].join('\n'),
      { data: { kind: this.#kind, variable: keyName, paths: [...paths] } },
    )
  }
}
