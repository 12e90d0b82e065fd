import { describe, expect, test } from 'vitest'
import type { Load } from '../../src/model/clients.ts'
import { Provider } from '../../src/model/provider.ts'
import { resolveModel } from '../../src/model/resolve.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { failure, generate, stream } from './ask.ts'
import { fakeSdk, finish } from './fake-sdk.ts'
import { config, place } from './places.ts'
import { wireServer } from './wire-server.ts'

const here = '/home/ann/.openrath/config.json'

describe('a name', () => {
  const named = (name: string | undefined, env = {}, files = {}) =>
    resolveModel(name, { surroundings: place(env, files) }).id

  test('may say the provider', () => {
    expect(named('openai/gpt-5.5')).toBe('openai/gpt-5.5')
    expect(named('anthropic/claude-opus-5-5')).toBe('anthropic/claude-opus-5-5')
    expect(named('azure/my-deployment')).toBe('azure/my-deployment')
    expect(named('openai-compatible/meta-llama/llama-4')).toBe('openai-compatible/meta-llama/llama-4')
  })

  test('may be bare, and is known by what it is called and what the environment has', () => {
    expect(named('gpt-5.5', { OPENAI_API_KEY: 'k' })).toBe('openai/gpt-5.5')
    expect(named('gpt-5.5', { AZURE_OPENAI_ENDPOINT: 'https://x.openai.azure.com' })).toBe('azure/gpt-5.5')
    expect(named('claude-opus-5-5', { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' })).toBe(
      'anthropic/claude-opus-5-5',
    )
    expect(named('meta-llama/llama-4', { OPENAI_BASE_URL: 'http://localhost/v1' })).toBe(
      'openai/meta-llama/llama-4',
    )
  })

  test('may be left out, when the environment or the config file has a default', () => {
    expect(named(undefined, { OPENAI_API_KEY: 'k', OPENAI_DEFAULT_MODEL: 'gpt-x' })).toBe('openai/gpt-x')
    expect(named(undefined, { ANTHROPIC_API_KEY: 'k', ANTHROPIC_DEFAULT_MODEL: 'claude-x' })).toBe(
      'anthropic/claude-x',
    )
    const files = { [here]: config({ a: { model: 'm' }, b: { model: 'n' } }, { default_provider: 'b' }) }
    expect(named(undefined, {}, files)).toBe('b/n')
    expect(named(undefined, { OPENAI_DEFAULT_MODEL: 'gpt-x' })).toBe('openai/gpt-x')
    expect(() => named(undefined)).toThrow(/OPENAI_DEFAULT_MODEL/)
  })

  test('may be one of the config file, with another model too', () => {
    const files = { [here]: config({ local: { model: 'llama', base_url: 'http://localhost/v1' } }) }
    expect(named('local', {}, files)).toBe('local/llama')
    expect(named('local/other', {}, files)).toBe('local/other')
    expect(named('anything', {}, files)).toBe('local/anything')
    expect(() => named('anything')).toThrow(/Nothing here knows the model "anything"/)
    expect(() => named('local', {}, { [here]: config({ local: {} }) })).toThrow(/names no model/)
  })
})

describe('an object', () => {
  test('of the AI SDK, or a model of ours, is a model', async () => {
    const ai = resolveModel(fakeSdk('v3', { parts: [finish.v3] }, 'mistral.chat'))
    expect(ai.id).toBe('mistral/model-1')
    expect((await stream(ai)).answer.finishReason).toBe('stop')
    expect((await generate(resolveModel(scripted(['Yes.'])))).content).toEqual([
      { type: 'text', text: 'Yes.' },
    ])
  })

  test('that is no model is refused', () => {
    for (const thing of [null, 7, {}, { id: 'x' }]) {
      expect(() => resolveModel(thing as never)).toThrow(/is not a model. Give a name such as/)
    }
  })

  test('that is a provider brings its settings, retry and budget', () => {
    const provider = new Provider({
      model: 'm',
      temperature: 0,
      retry: { attempts: 2 },
      budget: { tokens: 9 },
    })
    expect(resolveModel(provider)).toMatchObject({
      id: 'openai/m',
      settings: { temperature: 0 },
      retry: { attempts: 2 },
      budget: { tokens: 9 },
    })
  })
})

describe('the first use', () => {
  test('is when keys are looked for and packages loaded, and later uses share the client', async () => {
    await using server = await wireServer({ file: 'gateway/text.txt' })
    let loads = 0
    const load: Load = name => {
      loads++
      return import(name) as never
    }
    const env = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'env-key' }
    const model = resolveModel('openai/qwen', { surroundings: place(env), load })
    expect(loads).toBe(0)
    await Promise.all([stream(model), stream(model), stream(model)])
    expect(loads).toBe(1)
    expect(server.seen).toHaveLength(3)
    expect(server.seen[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: 'Bearer env-key' },
    })
  })

  test('fails with what is missing, and may succeed later', async () => {
    const env: Record<string, string> = {}
    const model = resolveModel('openai/gpt-5.5', { surroundings: place(env) })
    expect((await failure(stream(model))).code).toBe('credentials-missing')
    await using server = await wireServer({ file: 'gateway/text.txt' })
    env.OPENAI_BASE_URL = server.url
    expect((await stream(model)).answer.finishReason).toBe('stop')
    // A gateway without a key gets none, not even an empty one.
    expect(server.seen[0]?.headers).not.toHaveProperty('authorization')
  })

  test('of a package that is not installed says what to install', async () => {
    const load: Load = async () => {
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    }
    const surroundings = place({ ANTHROPIC_API_KEY: 'k' })
    const model = resolveModel('anthropic/claude-x', { surroundings, load })
    const error = await failure(stream(model))
    expect(error).toMatchObject({ code: 'missing-package', data: { package: '@ai-sdk/anthropic' } })
    expect(error.message).toContain('npm install @ai-sdk/anthropic')
  })
})

test('Azure is asked at its own address, dated or not', async () => {
  await using server = await wireServer({ file: 'openai-chat/text.txt' })
  const root = server.url.replace('/v1', '')
  const azure = (more: object) =>
    resolveModel(new Provider({ kind: 'azure', model: 'my-gpt', apiKey: 'z', baseURL: root, ...more }), {
      surroundings: place(),
    })
  await stream(azure({}))
  await stream(azure({ apiVersion: '2024-10-21' }))
  expect(server.seen.map(seen => seen.path)).toEqual([
    '/openai/v1/chat/completions',
    '/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21',
  ])
  expect(server.seen[0]?.headers['api-key']).toBe('z')
})

test('a refused key is told with where it came from', async () => {
  await using server = await wireServer({ status: 401, body: '{"error":{"message":"Who are you?"}}' })
  const env = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'env-key' }
  const known = await failure(stream(resolveModel('openai/m', { surroundings: place(env) })))
  expect(known.message).toContain('The key came from OPENAI_API_KEY.')
  const keyless = new Provider({ model: 'm', baseURL: server.url })
  const none = await failure(
    stream(resolveModel(keyless, { surroundings: place({ OPENAI_API_KEY: 'env-key' }) })),
  )
  expect(none.message).toContain('No key was sent')
  expect(server.seen[1]?.headers).not.toHaveProperty('authorization')
})
