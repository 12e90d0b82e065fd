import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type JsonObject } from '../base/json.ts'
import { type Load, openClient } from './clients.ts'
import { type ConfigProvider, readConfig } from './config.ts'
import { type Connection, connect } from './connection.ts'
import { type AiSdkModel, fromAiSdk, isAiSdkModel } from './drivers/ai-sdk/driver.ts'
import { environmentSays, kindsInEnvironment } from './environment.ts'
import { guessKind, isProviderKind, ownAddress, type ProviderKind, printable, sameHost } from './kind.ts'
import { type PriceTable, priceOf } from './prices.ts'
import { optionsOf, Provider, type ProviderBudget, providerFrom, secretsOf } from './provider.ts'
import type { RetryOptions } from './retry.ts'
import type { Model, ModelAnswer, ModelContext, ModelRequest, ModelSettings } from './spec.ts'
import { processSurroundings, type Surroundings } from './surroundings.ts'

/** Whatever may stand where a model is wanted. */
export type ModelLike = string | Provider | AiSdkModel | Model

/** A model, or several: where one gives no answer, the next is asked. */
export type ModelChoice = ModelLike | readonly ModelLike[]

/** A model with what its provider says about how to use it. */
export interface ResolvedModel extends Model {
  /** Used where a request does not say otherwise. */
  readonly settings: ModelSettings
  readonly retry?: RetryOptions | undefined
  readonly budget?: ProviderBudget | undefined
  /** The name that it was asked for by. */
  readonly named?: string | undefined
  /** Of several models in turn, the first. */
  readonly first?: ResolvedModel | undefined
  readonly fallbacks?: readonly ResolvedModel[] | undefined
  /** What it was made of, where that was a provider or a name. */
  readonly provider?: Provider | undefined
  /**
   * Where its key and address come from, without asking anybody; throws what the first request would. A model that was handed over
   * as an object sees to its own and has none of this.
   */
  credentials?(): { readonly source: string; readonly address: string }
}

export interface ResolveOptions {
  /** Environment, folders and files; those of this process by default. */
  readonly surroundings?: Surroundings
  readonly prices?: PriceTable
  readonly load?: Load
}

/**
 * The model that a name, a provider or an AI SDK object stands for; without any, the default of the environment or the config
 * file. Keys are looked for and packages loaded when the model is first asked, and one client serves all its requests.
 */
export function resolveModel(like: ModelLike | undefined, options: ResolveOptions = {}): ResolvedModel {
  if (like instanceof Provider) return new ProviderModel(like, labelOf(like), options)
  if (like === undefined || typeof like === 'string')
    return Object.assign(resolveName(like, options), { named: like })
  if (isAiSdkModel(like)) return asResolved(fromAiSdk(like, { prices: options.prices }))
  if (typeof like?.answer === 'function' && typeof like.id === 'string') return asResolved(like)
  throw new RathError(
    'invalid-argument',
    `${show(like)} is not a model. Give a name such as 'openai/gpt-5.5', a Provider, an AI SDK language model, or an object with id and answer().`,
  )
}

/**
 * A model for a part of a workflow. A name, or no name, is looked up at the first call and by `compile().validate()`: until then the
 * runtime (`createRuntime({ models })`), `to` or the environment may still say what it stands for.
 */
export function resolveLater(like: ModelChoice | undefined): ResolvedModel {
  if (isList(like)) return modelInTurn(like.map(resolveLater))
  return like === undefined || typeof like === 'string' ? new NamedModel(like) : resolveModel(like)
}

/** The model behind a name that is looked up late. Throws `unknown-model` where nothing here knows the name. `instead` says what a name stands for. */
export function foundModel(
  model: ResolvedModel,
  instead: (model: ResolvedModel) => ResolvedModel = one => one,
): ResolvedModel {
  if (model.fallbacks)
    return modelInTurn(
      [model.first, ...model.fallbacks].map(one => foundModel(one as ResolvedModel, instead)),
    )
  const found = instead(model)
  return found instanceof NamedModel ? found.find() : found
}

function isList(like: ModelChoice | undefined): like is readonly ModelLike[] {
  return Array.isArray(like)
}

/** The first of several models, with the others behind it. */
function modelInTurn(models: readonly ResolvedModel[]): ResolvedModel {
  const [first, ...fallbacks] = models
  if (first === undefined) {
    throw new RathError('invalid-argument', 'The list of models is empty; name at least one.')
  }
  if (fallbacks.length === 0) return first
  return {
    first,
    fallbacks,
    get id() {
      return models.map(({ id }) => id).join(' or ')
    },
    get settings() {
      return first.settings
    },
    get retry() {
      return first.retry
    },
    get budget() {
      return first.budget
    },
    get provider() {
      return first.provider
    },
    get priced() {
      return first.priced
    },
    wraps: first.wraps ?? first,
    answer: (request, context) => first.answer(request, context),
  }
}

/** A lookup that succeeded is kept; one that failed is tried again, since what was missing may be there by then. */
class NamedModel implements ResolvedModel {
  readonly named: string | undefined
  #found: ResolvedModel | undefined

  constructor(named: string | undefined) {
    this.named = named
  }

  find(): ResolvedModel {
    this.#found ??= resolveModel(this.named)
    return this.#found
  }

  get id(): string {
    return this.#known?.id ?? (this.named || 'default model')
  }

  get settings(): ModelSettings {
    return this.#known?.settings ?? {}
  }

  get retry(): RetryOptions | undefined {
    return this.#known?.retry
  }

  get budget(): ProviderBudget | undefined {
    return this.#known?.budget
  }

  get provider(): Provider | undefined {
    return this.#known?.provider
  }

  get priced(): boolean | undefined {
    return this.#known?.priced
  }

  credentials(): { source: string; address: string } {
    return this.find().credentials?.() as { source: string; address: string }
  }

  async answer(request: ModelRequest, context: ModelContext): Promise<ModelAnswer> {
    return this.find().answer(request, context)
  }

  toString(): string {
    return this.id
  }

  get #known(): ResolvedModel | undefined {
    try {
      return this.find()
    } catch {
      // Whoever asks it hears why.
      return undefined
    }
  }
}

function asResolved(model: Model): ResolvedModel {
  if ('settings' in model) return model as ResolvedModel
  return {
    id: model.id,
    settings: {},
    priced: model.priced,
    wraps: model.wraps ?? model,
    answer: (request, context) => model.answer(request, context),
  }
}

function labelOf({ kind, model, baseURL }: Provider): string {
  const guessed = kind ?? guessKind(model, baseURL)
  return guessed === 'openai' && baseURL !== undefined && !sameHost(baseURL, ownAddress('openai'))
    ? 'openai-compatible'
    : guessed
}

/** `kind/model`, `name-in-the-config/model`, a name in the config, or the bare name of a model. */
function resolveName(name: string | undefined, options: ResolveOptions): ProviderModel {
  const surroundings = options.surroundings ?? processSurroundings()
  const slash = name?.indexOf('/') ?? -1
  const prefix = name?.slice(0, Math.max(0, slash)) ?? ''
  const rest = name?.slice(slash + 1)
  const ofKind = (kind: ProviderKind, model: string) =>
    new ProviderModel(new Provider({ kind, model }), kind, { ...options, surroundings })
  const ofConfig = (entry: ConfigProvider, model?: string) => {
    const provider = providerFrom(optionsOf(entry, model), entry.source)
    return new ProviderModel(provider, entry.name, { ...options, surroundings })
  }

  if (isProviderKind(prefix) && rest) return ofKind(prefix, rest)
  if (name === undefined || name === '') {
    for (const kind of [...kindsInEnvironment(surroundings.env), 'openai', 'anthropic'] as const) {
      const { model } = environmentSays(kind, surroundings.env)
      if (model) return ofKind(kind, model)
    }
  }
  const known = name ? kindByName(name) : undefined
  const kinds = kindsInEnvironment(surroundings.env)
  if (name && known !== undefined) {
    if (kinds.includes(known)) return ofKind(known, name)
    if (known === 'openai' && kinds.includes('azure')) return ofKind('azure', name)
  }

  const { providers, defaultProvider, paths } = readConfig(surroundings)
  const entry = providers.find(one => one.name === name)
  if (entry) return ofConfig(entry)
  const prefixed = prefix && providers.find(one => one.name === prefix)
  if (prefixed && rest) return ofConfig(prefixed, rest)
  const fallback = providers.find(one => one.name === defaultProvider) ?? providers[0]
  if (!name) {
    if (fallback) return ofConfig(fallback)
  } else {
    if (known !== undefined) return ofKind(known, name)
    const kind = kinds.find(one => one !== 'anthropic')
    // OpenAI itself serves nobody else's models; an address of one's own may.
    const isElsewhere = kind === 'openai' && Object.hasOwn(sdkPackages, prefix)
    if (kind && !isElsewhere) return ofKind(kind, name)
    if (fallback) return ofConfig(fallback, name)
  }
  throw unknown(name, providers, paths)
}

/** Providers whose models the AI SDK has a package for, and what that exports. */
const sdkPackages: Readonly<Record<string, readonly [packageName: string, factory: string]>> = {
  google: ['google', 'google'],
  gemini: ['google', 'google'],
  vertex: ['google-vertex', 'vertex'],
  mistral: ['mistral', 'mistral'],
  bedrock: ['amazon-bedrock', 'bedrock'],
  groq: ['groq', 'groq'],
  xai: ['xai', 'xai'],
  cohere: ['cohere', 'cohere'],
  deepseek: ['deepseek', 'deepseek'],
  perplexity: ['perplexity', 'perplexity'],
  togetherai: ['togetherai', 'togetherai'],
  fireworks: ['fireworks', 'fireworks'],
  cerebras: ['cerebras', 'cerebras'],
}

/** The kind whose models are called like this. */
function kindByName(name: string): ProviderKind | undefined {
  if (/^claude/.test(name)) return 'anthropic'
  return /^(gpt-|o\d|chatgpt)/.test(name) ? 'openai' : undefined
}

function unknown(
  name: string | undefined,
  providers: readonly ConfigProvider[],
  paths: readonly string[],
): RathError {
  const [prefix = '', ...rest] = name?.split('/') ?? []
  const sdk = rest.length > 0 && Object.hasOwn(sdkPackages, prefix) ? sdkPackages[prefix] : undefined
  if (sdk) {
    const [packageName, factory] = sdk
    return new RathError(
      'unknown-model',
      [
        `${show(name)} needs a package that openrath does not bring. Run: npm install @ai-sdk/${packageName}`,
        'Then hand the model over:',
        `  import { ${factory} } from '@ai-sdk/${packageName}'`,
        `  new Agent('…', { model: ${factory}('${rest.join('/')}') })`,
      ].join('\n'),
      { data: { package: `@ai-sdk/${packageName}` } },
    )
  }
  const listed = providers.map(entry => show(entry.name)).join(', ') || 'none'
  return new RathError(
    'unknown-model',
    [
      name ? `Nothing here knows the model ${show(name)}. Looked at:` : 'No model was named. Looked at:',
      '  the environment: OPENAI_DEFAULT_MODEL, ANTHROPIC_DEFAULT_MODEL, OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, AZURE_OPENAI_ENDPOINT',
      `  ${paths[0]}: llm.providers has ${listed}`,
      `Name it with its provider, such as 'openai/${name || 'gpt-5.5'}', or set one of these.`,
    ].join('\n'),
  )
}

class ProviderModel implements ResolvedModel {
  readonly id: string
  readonly settings: ModelSettings
  readonly retry: RetryOptions | undefined
  readonly budget: ProviderBudget | undefined
  readonly provider: Provider
  named: string | undefined
  readonly #options: ResolveOptions
  #opening: Promise<{ model: Model; connection: Connection }> | undefined

  constructor(provider: Provider, label: string, options: ResolveOptions) {
    this.id = `${label}/${provider.model}`
    this.settings = provider.settings
    this.retry = provider.retry
    this.budget = provider.budget
    this.provider = provider
    this.#options = options
  }

  async answer(request: ModelRequest, context: ModelContext): Promise<ModelAnswer> {
    this.#opening ??= this.#open()
    const { model, connection } = await this.#opening.catch(error => {
      // What was missing may be there the next time.
      this.#opening = undefined
      throw error
    })
    try {
      const settings = mergeSettings(this.settings, request.settings)
      return await model.answer({ ...request, settings }, context)
    } catch (error) {
      throw error instanceof RathError && error.code === 'model-unauthorized'
        ? withSource(error, connection)
        : error
    }
  }

  async #open(): Promise<{ model: Model; connection: Connection }> {
    const { provider } = this
    const connection = this.#connect()
    const { headers } = secretsOf(provider)
    const client = await openClient(connection, provider.model, {
      api: provider.api,
      headers,
      load: this.#options.load,
    })
    const prices = this.#prices
    const secrets = secretsSent(connection, headers)
    return { model: fromAiSdk(client, { id: this.id, prices, secrets }), connection }
  }

  get priced(): boolean {
    return priceOf(this.id, this.#prices) !== undefined
  }

  get #prices(): PriceTable {
    return { ...this.#options.prices, ...this.provider.prices }
  }

  credentials(): { source: string; address: string } {
    const { source, baseURL } = this.#connect()
    return { source, address: printable(baseURL) ?? '' }
  }

  #connect(): Connection {
    return connect(this.provider, this.#options.surroundings ?? processSurroundings())
  }

  toString(): string {
    return this.id
  }
}

/** Short ones are no secrets, and would be found inside of words. */
function secretsSent({ apiKey = '' }: Connection, headers: Readonly<Record<string, string>> = {}): string[] {
  const named = Object.entries(headers).filter(([name]) => /auth|key|token|secret|cookie/i.test(name))
  return [apiKey, ...named.map(([, value]) => value)].filter(secret => secret.length >= 8)
}

function mergeSettings(own: ModelSettings, asked: ModelSettings): ModelSettings {
  if (own.providerOptions === undefined || asked.providerOptions === undefined) return { ...own, ...asked }
  const providerOptions: Record<string, JsonObject> = {}
  for (const options of [own.providerOptions, asked.providerOptions]) {
    for (const [name, value] of Object.entries(options)) {
      if (isPlainObject(value)) providerOptions[name] = { ...providerOptions[name], ...(value as JsonObject) }
    }
  }
  return { ...own, ...asked, providerOptions }
}

function withSource(error: RathError, { apiKey, source, baseURL }: Connection): RathError {
  const where =
    apiKey === undefined
      ? `No key was sent: ${source} names the address ${printable(baseURL)} without one.`
      : `The key came from ${source}.`
  return new RathError(error.code, `${error.message}\n${where}`, { data: error.data, cause: error })
}
