import type { JsonObject } from '../../../base/json.ts'
import type { AiSdkModel, ByProvider } from './types.ts'

/** What differs between providers behind the one interface of the AI SDK, where it does not level it out itself. */
export interface Dialect {
  readonly version: 'v2' | 'v3' | 'v4'
  /** Put on the last message of a stable beginning. Absent where the provider caches by itself. */
  readonly cacheMarker?: ByProvider
  /** Images and files may lie inside a tool result; otherwise they follow in a message of the user. */
  readonly mediaInResults: boolean
  /** Which of them may. What the package would refuse there, or leave out, is named instead. Absent where any will do. */
  readonly resultMedia?: RegExp
  /** Text files that it takes as files; of others the text is sent. */
  readonly textFiles?: RegExp
  /** Takes several system messages; otherwise they are joined. */
  readonly systemMessages: boolean
  /** Options sent unless the request says otherwise. */
  readonly defaults?: ByProvider
  /** Where `strictJsonSchema` goes, for providers that refuse a schema with optional fields when it is on. */
  readonly strictSchemas?: string
  /** Ids of calls that the provider takes back; others, from other providers, are rewritten. Absent where any will do. */
  readonly callIds?: RegExp
  /** Refuses to go on from an answer: somebody else must have the last word. */
  readonly lastWord: boolean
  /** Counts cached input beside the input instead of in it. */
  readonly cachedBesideInput: boolean
}

export function dialectOf({ provider, modelId, specificationVersion: version }: AiSdkModel): Dialect {
  const [name = '', api] = provider.split('.')
  if (provider.includes('anthropic')) {
    return {
      version,
      cacheMarker: { anthropic: { cacheControl: { type: 'ephemeral' } } },
      mediaInResults: true,
      resultMedia: /^image\/|^application\/pdf$/,
      textFiles: /^text\/plain$/,
      systemMessages: true,
      callIds: /^[\w-]{1,64}$/,
      lastWord: true,
      cachedBesideInput: version === 'v2',
    }
  }
  const isOpenAi = name === 'openai' || name.startsWith('azure')
  const isChat = api === 'chat'
  // The responses API keeps answers on the server by default, and later requests name them by id. A session may be forked,
  // rewound, continued by another account or replayed next year, so everything travels with it instead.
  const defaults: JsonObject | undefined = isOpenAi && api === 'responses' ? { store: false } : undefined
  return {
    version,
    // Chat completions take text alone as a tool's result.
    mediaInResults: !isChat,
    ...(isChat && { resultMedia: /^image\/|^audio\/(wav|mp3|mpeg)$|^application\/pdf$/ }),
    // Pictures and documents; archives and sounds are refused.
    ...(isOpenAi && !isChat && { resultMedia: /^image\/|^application\/(pdf|msword|rtf|vnd\.)/ }),
    ...(!isOpenAi && { textFiles: isChat ? /^text\// : /./ }),
    systemMessages: isOpenAi || !isChat,
    ...(defaults && { defaults: { [name]: defaults } }),
    ...(isOpenAi
      ? { strictSchemas: name, callIds: /^[\w-]{1,40}$/ }
      : isChat && { strictSchemas: 'openaiCompatible' }),
    // Wherever it is rented.
    lastWord: modelId.includes('claude'),
    cachedBesideInput: false,
  }
}
