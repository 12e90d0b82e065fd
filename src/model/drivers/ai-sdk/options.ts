import type { Json, JsonObject } from '../../../base/json.ts'
import { isPlainObject } from '../../../base/json.ts'
import type { ModelRequest, ModelSettings } from '../../spec.ts'
import type { Dialect } from './dialect.ts'
import { type Conversations, toPrompt } from './prompt.ts'
import type { ByProvider, CallOptions } from './types.ts'

/** A request as the AI SDK takes it. Schemas go through untouched. */
export function toCallOptions(
  request: ModelRequest,
  dialect: Dialect,
  abortSignal: AbortSignal,
  conversations?: Conversations,
): CallOptions {
  const { settings, tools, toolChoice, output } = request
  const options: CallOptions = {
    prompt: toPrompt(request.messages, dialect, settings.cache !== false, conversations),
    abortSignal,
  }
  if (tools.length > 0) {
    options.tools = tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      description,
      inputSchema: parameters,
    }))
    // Providers refuse a choice among no tools, so it is sent with tools alone.
    if (typeof toolChoice === 'object') options.toolChoice = { type: 'tool', toolName: toolChoice.name }
    else if (toolChoice !== undefined) options.toolChoice = { type: toolChoice }
  }
  if (output) options.responseFormat = { type: 'json', name: output.name, schema: output.schema }
  const { maxOutputTokens, temperature, topP, topK, stop, seed, frequencyPenalty, presencePenalty } = settings
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens
  if (temperature !== undefined) options.temperature = temperature
  if (topP !== undefined) options.topP = topP
  if (topK !== undefined) options.topK = topK
  if (stop !== undefined) options.stopSequences = [...stop]
  if (seed !== undefined) options.seed = seed
  if (frequencyPenalty !== undefined) options.frequencyPenalty = frequencyPenalty
  if (presencePenalty !== undefined) options.presencePenalty = presencePenalty
  if (settings.reasoning !== undefined && dialect.version === 'v4') options.reasoning = settings.reasoning
  const own = providerOptions(settings, output?.schema, dialect)
  if (own) options.providerOptions = own
  return options
}

/** What was asked for and cannot be said to this model, one sentence each. */
export function unsaid({ settings }: ModelRequest, { version }: Dialect): string[] {
  return settings.reasoning !== undefined && version !== 'v4'
    ? [`reasoning: a model of specification ${version} takes it through providerOptions alone`]
    : []
}

function providerOptions(
  { providerOptions: asked }: ModelSettings,
  schema: JsonObject | undefined,
  { defaults, strictSchemas }: Dialect,
): ByProvider | undefined {
  let merged: Record<string, JsonObject> | undefined = defaults && { ...defaults }
  if (schema && strictSchemas && !isClosed(schema)) {
    merged = {
      ...merged,
      [strictSchemas]: { ...merged?.[strictSchemas], strictJsonSchema: false },
    }
  }
  for (const [provider, options] of Object.entries(asked ?? {})) {
    if (!isPlainObject(options)) continue
    merged = { ...merged, [provider]: { ...merged?.[provider], ...(options as JsonObject) } }
  }
  return merged
}

/** What OpenAI's strict mode refuses wherever it stands. */
const tooFree = new Set([
  'oneOf',
  'allOf',
  'not',
  'if',
  'prefixItems',
  'patternProperties',
  'dependentSchemas',
])

/** True when every object in the schema requires all it has and allows nothing else: what OpenAI's strict mode takes. */
function isClosed(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.every(isClosed)
  if (!isPlainObject(schema)) return true
  const { properties, required, additionalProperties } = schema as JsonObject
  if (isPlainObject(properties)) {
    const names = Array.isArray(required) ? required : []
    if (additionalProperties !== false || !Object.keys(properties).every(name => names.includes(name)))
      return false
    if (!Object.values(properties as JsonObject).every(isClosed)) return false
  } else if (schema.type === 'object') return false
  return Object.entries(schema as JsonObject).every(
    ([key, value]) => key === 'properties' || (!tooFree.has(key) && isClosed(value)),
  )
}
