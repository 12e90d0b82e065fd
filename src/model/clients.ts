import { RathError } from '../base/errors.ts'
import type { Connection } from './connection.ts'
import type { AiSdkModel } from './drivers/ai-sdk/driver.ts'
import { ownAddress, sameHost } from './kind.ts'

/** Loads a provider package; replaced in tests. Untyped here, so that our types do not bring the packages' into your project. */
export type Load = (name: keyof typeof packages) => Promise<unknown>

export interface ClientOptions {
  readonly api?: 'responses' | 'chat' | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly load?: Load | undefined
}

interface Opening extends ClientOptions {
  readonly load: Load
}

const packages = {
  '@ai-sdk/openai': (): Promise<unknown> => import('@ai-sdk/openai'),
  '@ai-sdk/anthropic': (): Promise<unknown> => import('@ai-sdk/anthropic'),
  '@ai-sdk/openai-compatible': (): Promise<unknown> => import('@ai-sdk/openai-compatible'),
}

/**
 * The language model behind a connection. Address and key are always handed over: left out, the packages would look into the
 * environment themselves and put together what does not belong together.
 */
export async function openClient(
  connection: Connection,
  model: string,
  given: ClientOptions = {},
): Promise<AiSdkModel> {
  const options: Opening = { ...given, load: loading(given.load) }
  const { kind, baseURL } = connection
  if (kind === 'anthropic') return openAnthropic(connection, model, options)
  if (kind === 'azure') return openAzure(connection, model, options)
  const isOwn = sameHost(baseURL, ownAddress('openai'))
  return kind === 'openai' && (isOwn || options.api !== undefined)
    ? openOpenAi(connection, model, options)
    : openCompatible(connection, model, options)
}

/** Sent where a package insists on a key and none is wanted. */
const noKey = 'none'

async function openOpenAi(
  { baseURL, apiKey = noKey }: Connection,
  model: string,
  { api, headers, load }: Opening,
): Promise<AiSdkModel> {
  const { createOpenAI } = (await load('@ai-sdk/openai')) as typeof import('@ai-sdk/openai')
  const client = createOpenAI({ baseURL, apiKey, ...(headers && { headers: { ...headers } }) })
  return api === 'chat' ? client.chat(model) : client.responses(model)
}

async function openCompatible(
  { baseURL, apiKey }: Connection,
  model: string,
  { headers, load }: Opening,
): Promise<AiSdkModel> {
  const { createOpenAICompatible } = (await load(
    '@ai-sdk/openai-compatible',
  )) as typeof import('@ai-sdk/openai-compatible')
  return createOpenAICompatible({
    // Not `openaiCompatible`: under that name, what answers carry back would be spread over the messages.
    name: 'compatible',
    baseURL,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...(apiKey !== undefined && { apiKey }),
    ...(headers && { headers: { ...headers } }),
  }).chatModel(model)
}

async function openAnthropic(
  { baseURL: given, apiKey = noKey }: Connection,
  model: string,
  { headers, load }: Opening,
): Promise<AiSdkModel> {
  const { createAnthropic } = (await load('@ai-sdk/anthropic')) as typeof import('@ai-sdk/anthropic')
  // Anthropic's own tools take the address without the version, this package with it.
  const address = given.replace(/\/+$/, '')
  const baseURL = /\/v\d+$/.test(address) ? address : `${address}/v1`
  return createAnthropic({ baseURL, apiKey, ...(headers && { headers: { ...headers } }) })(model)
}

/** Azure's own API of a version, or the one that is like OpenAI's and has none. The model is the name of a deployment. */
async function openAzure(
  { baseURL: given, apiKey = noKey, apiVersion }: Connection,
  model: string,
  { api, headers, load }: Opening,
): Promise<AiSdkModel> {
  const { createOpenAI } = (await load('@ai-sdk/openai')) as typeof import('@ai-sdk/openai')
  const address = given.replace(/\/+$/, '')
  const dated = apiVersion !== undefined && !/\/openai\/v1$/.test(address)
  const root = address.replace(/\/openai(\/v1)?$/, '')
  const client = createOpenAI({
    name: 'azure',
    apiKey,
    baseURL: dated ? `${root}/openai/deployments/${encodeURIComponent(model)}` : `${root}/openai/v1`,
    headers: { 'api-key': apiKey, ...headers },
    ...(dated && {
      fetch: (url, init) => fetch(`${url}?api-version=${encodeURIComponent(apiVersion)}`, init),
    }),
  })
  return api === 'responses' ? client.responses(model) : client.chat(model)
}

const loadPackage: Load = name => packages[name]()

/** Loads a package, or says what to install. */
function loading(load: Load = loadPackage): Load {
  return async name => {
    try {
      return await load(name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
      throw new RathError(
        'missing-package',
        `This model needs the package ${name}. Run: npm install ${name}`,
        {
          cause: error,
          data: { package: name },
        },
      )
    }
  }
}
