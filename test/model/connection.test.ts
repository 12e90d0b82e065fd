import { describe, expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { connect } from '../../src/model/connection.ts'
import { Provider } from '../../src/model/provider.ts'
import { config, place } from './places.ts'

const here = '/home/ann/.openrath/config.json'
const keys = '/home/ann/.openrath/credentials.json'
const openai = 'https://api.openai.com/v1'
const evil = 'https://evil.example/v1'

const provider = (more: object = {}) => new Provider({ model: 'gpt-5.5', ...more })

function refusal(work: () => unknown): RathError {
  try {
    work()
  } catch (error) {
    if (error instanceof RathError) return error
    throw error
  }
  throw new Error('it was not refused')
}

describe('key and address', () => {
  test('given together go together', () => {
    const place0 = place({ OPENAI_API_KEY: 'env-key', OPENAI_BASE_URL: evil })
    expect(connect(provider({ apiKey: 'mine', baseURL: 'http://localhost:1/v1' }), place0)).toMatchObject({
      apiKey: 'mine',
      baseURL: 'http://localhost:1/v1',
    })
  })

  test('come from the environment before the config file', () => {
    const files = { [here]: config({ a: { provider_kind: 'openai', api_key: 'file-key', base_url: evil } }) }
    expect(connect(provider(), place({ OPENAI_API_KEY: 'env-key' }, files))).toMatchObject({
      apiKey: 'env-key',
      baseURL: openai,
      source: 'OPENAI_API_KEY',
    })
    expect(connect(provider(), place({}, files))).toMatchObject({ apiKey: 'file-key', baseURL: evil })
  })

  test('of Anthropic and Azure are found under their names', () => {
    const claude = new Provider({ model: 'claude-opus-5-5' })
    expect(connect(claude, place({ ANTHROPIC_API_KEY: 'a' }))).toMatchObject({
      kind: 'anthropic',
      apiKey: 'a',
      baseURL: 'https://api.anthropic.com/v1',
    })
    const env = {
      AZURE_OPENAI_ENDPOINT: 'https://x.openai.azure.com',
      AZURE_API_KEY: 'z',
      OPENAI_API_VERSION: '2024-10-21',
    }
    const azure = new Provider({ model: 'my-deployment', kind: 'azure' })
    expect(connect(azure, place(env))).toMatchObject({
      apiKey: 'z',
      apiVersion: '2024-10-21',
      source: 'AZURE_API_KEY',
    })
    const atAzure = { OPENAI_BASE_URL: 'https://x.openai.azure.com/openai/v1', OPENAI_API_KEY: 'o' }
    expect(connect(provider(), place(atAzure))).toMatchObject({ kind: 'azure', apiKey: 'o' })
  })
})

describe('a key is never sent where another source says', () => {
  test('the environment’s key to the address of a config file', () => {
    const files = { [here]: config({ a: { provider_kind: 'openai', base_url: evil } }) }
    const where = place({ OPENAI_API_KEY: 'env-key' }, files)
    for (const one of [
      provider(),
      Provider.fromConfig('a', place({}, { [here]: config({ a: { model: 'm', base_url: evil } }) })),
    ]) {
      const error = refusal(() => connect(one, where))
      expect(error.code).toBe('credentials-mixed')
      expect(error.message).toContain('OPENAI_API_KEY')
      expect(error.message).toContain(here)
      expect(error.message).not.toContain('env-key')
    }
  })

  test('the key of credentials.json to an address in config.json', () => {
    const files = {
      [here]: config({ a: { model: 'm', base_url: evil } }),
      [keys]: { providers: { a: { api_key: 'kept', base_url: 'https://gateway.example/v1' } } },
    }
    const error = refusal(() => Provider.fromConfig('a', place({}, files)))
    expect(error).toMatchObject({ code: 'credentials-mixed' })
    expect(error.message).toContain(keys)
    expect(error.message).toContain(here)
    const without = { ...files, [keys]: { providers: { a: { api_key: 'kept' } } } }
    expect(refusal(() => Provider.fromConfig('a', place({}, without))).code).toBe('credentials-mixed')
  })

  test('a key in code to the address of the environment, or the other way round', () => {
    const where = place({ OPENAI_API_KEY: 'env-key', OPENAI_BASE_URL: evil })
    expect(refusal(() => connect(provider({ apiKey: 'mine' }), where)).message).toMatch(/OPENAI_BASE_URL/)
    const local = connect(provider({ baseURL: 'http://localhost:11434/v1' }), where)
    expect(local).not.toHaveProperty('apiKey')
    const claude = { model: 'claude-x', kind: 'anthropic', baseURL: evil } as const
    expect(refusal(() => connect(new Provider(claude), place({ ANTHROPIC_API_KEY: 'k' }))).code).toBe(
      'credentials-mixed',
    )
  })

  test('the key of a config file to the address of the environment', () => {
    const files = { [here]: config({ a: { provider_kind: 'openai', api_key: 'file-key' } }) }
    expect(refusal(() => connect(provider(), place({ OPENAI_BASE_URL: evil }, files))).code).toBe(
      'credentials-mixed',
    )
  })

  test('unless it is the same host after all', () => {
    const files = { [here]: config({ a: { provider_kind: 'openai', base_url: openai } }) }
    expect(connect(provider(), place({ OPENAI_API_KEY: 'k' }, files))).toMatchObject({
      apiKey: 'k',
      baseURL: openai,
    })
    expect(connect(provider({ baseURL: openai }), place({ OPENAI_API_KEY: 'k' }))).toMatchObject({
      apiKey: 'k',
    })
  })
})

test('a gateway without a key needs none, also where the environment has one and the file says so', () => {
  const url = 'http://localhost:11434/v1'
  expect(connect(provider(), place({ OPENAI_BASE_URL: url }))).toEqual({
    kind: 'openai',
    baseURL: url,
    source: 'OPENAI_BASE_URL',
  })
  const files = { [here]: config({ local: { model: 'm', base_url: url, api_key: null } }) }
  const local = Provider.fromConfig('local', place({}, files))
  expect(connect(local, place({ OPENAI_API_KEY: 'env-key' }))).not.toHaveProperty('apiKey')
})

test('missing credentials name every place that was looked at', () => {
  const error = refusal(() =>
    connect(provider(), place({}, { [here]: config({ c: { provider_kind: 'anthropic' } }) })),
  )
  expect(error.code).toBe('credentials-missing')
  for (const looked of ['new Provider(', 'OPENAI_API_KEY', here, keys, '"c" (anthropic)']) {
    expect(error.message).toContain(looked)
  }
})
