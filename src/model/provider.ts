import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type Problem, refuse } from '../base/json.ts'
import { type ConfigProvider, findConfigProvider } from './config.ts'
import { type ProviderKind, printable, providerKinds } from './kind.ts'
import type { PriceTable } from './prices.ts'
import type { RetryOptions } from './retry.ts'
import type { ModelSettings } from './spec.ts'
import { processSurroundings, type Surroundings } from './surroundings.ts'

/** Limits on what a provider may be used for; the run that calls it keeps count. */
export interface ProviderBudget {
  /** Input and output tokens together. */
  readonly tokens?: number
  /** US dollars. A model whose price is not known is refused, unless `{ limit, unknown: 'ignore' }` says to count it as nothing. */
  readonly cost?: number | CostLimit
  /** Model calls. */
  readonly rounds?: number
  /** Milliseconds from the start. */
  readonly time?: number
}

export interface CostLimit {
  /** US dollars. */
  readonly limit: number
  /** What becomes of models whose price is not known: they are refused (default), or their answers count as nothing. */
  readonly unknown?: 'refuse' | 'ignore'
}

export interface ProviderOptions extends ModelSettings {
  /** The name the provider knows it by, without a prefix. */
  readonly model: string
  /** Belongs to `baseURL`, or to the provider's own address. An empty one sends no key. */
  readonly apiKey?: string
  /** Where the API lies; the provider's own address by default. The environment's key is not sent to another host. */
  readonly baseURL?: string
  /** Which protocol; told by the name of the model by default. */
  readonly kind?: ProviderKind
  /** OpenAI only: `responses` by default, `chat` for chat completions. At another base URL, chat completions by default. */
  readonly api?: 'responses' | 'chat'
  /** Azure only: use the dated API of this version instead of `/openai/v1`. */
  readonly apiVersion?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly retry?: RetryOptions
  readonly budget?: ProviderBudget
  /** Prices that come before the list prices, by `provider/name`. */
  readonly prices?: PriceTable
}

/** What must not be printed, and where it came from. */
export interface ProviderSecrets {
  readonly apiKey: string | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Where key and address were written down, for messages. */
  readonly source: string
}

let readSecrets: (provider: Provider) => ProviderSecrets

/** A model with everything needed to call it. Frozen; printing it in any way never shows a key. */
export class Provider {
  readonly model: string
  readonly kind: ProviderKind | undefined
  readonly baseURL: string | undefined
  readonly api: 'responses' | 'chat' | undefined
  readonly apiVersion: string | undefined
  readonly settings: ModelSettings
  readonly retry: RetryOptions | undefined
  readonly budget: ProviderBudget | undefined
  readonly prices: PriceTable | undefined
  readonly #secrets: ProviderSecrets

  constructor(options: ProviderOptions) {
    check(options)
    const { model, apiKey, baseURL, kind, api, apiVersion, headers, retry, budget, prices, ...settings } =
      options
    this.model = model
    this.kind = kind
    this.baseURL = baseURL
    this.api = api
    this.apiVersion = apiVersion
    this.settings = Object.freeze(settings)
    this.retry = retry && Object.freeze({ ...retry })
    this.budget = budget && Object.freeze({ ...budget })
    this.prices = prices
    this.#secrets = {
      apiKey,
      headers: headers && { ...headers },
      source: sourceOf.get(options) ?? 'new Provider(…)',
    }
    Object.freeze(this)
  }

  /** A provider of the config file by its name; the default one without a name. */
  static fromConfig(name?: string, surroundings: Surroundings = processSurroundings()): Provider {
    const found = findConfigProvider(name, surroundings)
    return providerFrom(optionsOf(found), found.source)
  }

  toString(): string {
    return this.model
  }

  toJSON(): object {
    const { model, kind, baseURL, api, apiVersion, settings, retry, budget } = this
    return { model, kind, baseURL: printable(baseURL), api, apiVersion, ...settings, retry, budget }
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `Provider ${JSON.stringify(this)}`
  }

  static {
    readSecrets = provider => provider.#secrets
  }
}

/** For those who connect. */
export function secretsOf(provider: Provider): ProviderSecrets {
  return readSecrets(provider)
}

/** A provider whose key and address were written down somewhere else than in a caller's code. */
export function providerFrom(options: ProviderOptions, source: string): Provider {
  sourceOf.set(options, source)
  return new Provider(options)
}

const sourceOf = new WeakMap<ProviderOptions, string>()

/** Options of a provider that a config file describes, for this model or its own. */
export function optionsOf(found: ConfigProvider, model: string | undefined = found.model): ProviderOptions {
  if (model === undefined) {
    throw new RathError(
      'unknown-model',
      `The provider ${show(found.name)} names no model. Add "model" to it in ${found.source}, or name one: ${show(`${found.name}/MODEL`)}.`,
    )
  }
  const { kind, apiKey, baseURL, temperature, maxOutputTokens } = found
  return {
    model,
    kind,
    ...(apiKey !== undefined && { apiKey }),
    ...(baseURL !== undefined && { baseURL }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
  }
}

const known: Record<keyof ProviderOptions, 'string' | 'number' | 'object' | 'boolean' | readonly string[]> = {
  model: 'string',
  apiKey: 'string',
  baseURL: 'string',
  kind: providerKinds,
  api: ['responses', 'chat'],
  apiVersion: 'string',
  headers: 'object',
  retry: 'object',
  budget: 'object',
  prices: 'object',
  temperature: 'number',
  topP: 'number',
  topK: 'number',
  maxOutputTokens: 'number',
  stop: 'object',
  seed: 'number',
  frequencyPenalty: 'number',
  presencePenalty: 'number',
  reasoning: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'],
  cache: 'boolean',
  providerOptions: 'object',
}

function check(options: ProviderOptions): void {
  const problems: Problem[] = []
  const add = (path: string, message: string) => problems.push({ path, message })
  const given: Record<string, unknown> = isPlainObject(options) ? options : {}
  if (typeof given.model !== 'string' || given.model === '') {
    add('model', `${show(given.model)} is not the name of a model, such as 'gpt-5.5'`)
  }
  for (const [name, value] of Object.entries(given)) {
    const wanted = Object.hasOwn(known, name) ? known[name as keyof ProviderOptions] : undefined
    if (wanted === undefined) add(name, `not an option; the options are ${Object.keys(known).join(', ')}`)
    else if (value === undefined || name === 'model') continue
    // A key is never quoted, whatever is wrong with it.
    else if (name === 'apiKey' && typeof value !== 'string') add(name, 'must be a string')
    else if (typeof wanted === 'string' ? typeof value !== wanted : !wanted.includes(value as string))
      add(name, `${show(value)} is not ${typeof wanted === 'string' ? `a ${wanted}` : wanted.join(', ')}`)
  }
  if (typeof given.baseURL === 'string' && !/^https?:$/.test(URL.parse(given.baseURL)?.protocol ?? '')) {
    add('baseURL', `${show(given.baseURL)} is not an http or https URL`)
  }
  refuse('invalid-argument', 'new Provider(options) cannot use these options', problems)
}
