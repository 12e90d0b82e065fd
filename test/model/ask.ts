import { RathError } from '../../src/base/errors.ts'
import { Provider, type ProviderOptions } from '../../src/model/provider.ts'
import { type ResolvedModel, resolveModel } from '../../src/model/resolve.ts'
import type { Model, ModelAnswer, ModelDelta, ModelRequest } from '../../src/model/spec.ts'

export const key = 'sk-test-0123456789abcdef'

export function request(fields: Partial<ModelRequest> = {}): ModelRequest {
  return {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Is the door open?' }] }],
    tools: [],
    settings: {},
    ...fields,
  }
}

export interface Asked {
  readonly answer: ModelAnswer
  readonly deltas: ModelDelta[]
  /** The text that streamed. */
  readonly streamed: string
}

/** One answer, streamed. */
export async function stream(model: Model, fields: Partial<ModelRequest> = {}): Promise<Asked> {
  const deltas: ModelDelta[] = []
  const { signal } = new AbortController()
  const answer = await model.answer(request(fields), { signal, onDelta: delta => deltas.push(delta) })
  const streamed = deltas.map(delta => (delta.type === 'text-delta' ? delta.text : '')).join('')
  return { answer, deltas, streamed }
}

/** One answer in one piece. */
export function generate(model: Model, fields: Partial<ModelRequest> = {}): Promise<ModelAnswer> {
  return model.answer(request(fields), { signal: new AbortController().signal })
}

/** The error that something fails with. */
export async function failure(work: Promise<unknown>): Promise<RathError> {
  const error = await work.then(
    value => new Error(`it did not fail but gave ${JSON.stringify(value)}`),
    error => error,
  )
  if (error instanceof RathError) return error
  throw error
}

/** A model of each protocol, served at this address. */
export const protocols = {
  'openai-chat': at({ model: 'gpt-5.4', kind: 'openai', api: 'chat' }),
  'openai-responses': at({ model: 'gpt-5.5', kind: 'openai', api: 'responses' }),
  anthropic: at({ model: 'claude-opus-5-5', kind: 'anthropic' }),
  gateway: at({ model: 'qwen/qwen4-32b', kind: 'openai-compatible' }),
}
export type Protocol = keyof typeof protocols
export const protocolNames = Object.keys(protocols) as Protocol[]

function at(options: ProviderOptions) {
  return (baseURL: string, more: Partial<ProviderOptions> = {}): ResolvedModel =>
    resolveModel(new Provider({ apiKey: key, ...options, baseURL, ...more }))
}
