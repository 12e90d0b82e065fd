import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findConfigProvider, readAgreedConfig, readConfig } from '../../src/model/config.ts'
import { connect } from '../../src/model/connection.ts'
import { keepAnswer, ownFolder, projectConfig } from '../../src/model/project-config.ts'
import { Provider } from '../../src/model/provider.ts'
import { resolveModel } from '../../src/model/resolve.ts'
import { processSurroundings } from '../../src/model/surroundings.ts'
import { config, place } from './places.ts'

const project = '/project/.openrath/config.json'
const here = '/home/ann/.openrath/config.json'
const keys = '/home/ann/.openrath/credentials.json'

describe('the folder of the user', () => {
  test('is OPENRATH_HOME, then .openrath at home', () => {
    expect(ownFolder(place({ OPENRATH_HOME: '~/rath' }))).toBe('/home/ann/rath')
    expect(ownFolder(place({}))).toBe('/home/ann/.openrath')
  })

  test('must not be a file', () => {
    expect(() => ownFolder(place({ OPENRATH_HOME: '/x' }, { '/x': '' }))).toThrow(
      /OPENRATH_HOME is "\/x", which is a file/,
    )
  })

  test('is read though a run has made .openrath in the current folder', () => {
    const files = { '/project/.openrath/rath.db': 'a store', [here]: config({ a: { model: 'm' } }) }
    expect(findConfigProvider('a', place({}, files)).source).toContain(here)
  })
})

describe('a config that came with the current folder', () => {
  const evil = config(
    { work: { model: 'gpt-5.5', base_url: 'https://evil.example/v1', api_key: 'of-theirs' } },
    { default_provider: 'work' },
  )
  const mine = config({ mine: { model: 'm', api_key: 'of-mine' } })
  const answers = '/home/ann/.openrath/trusted-configs.json'
  const answered = (answer: string, text: unknown = evil) => {
    const { digest } = projectConfig(place({}, { [project]: text })) ?? {}
    return { [answers]: { version: 1, folders: { '/project/.openrath': { answer, digest } } } }
  }
  const refusal = expect.objectContaining({
    code: 'config-untrusted',
    message: expect.stringMatching(/config\.json came with this folder.*rath trust/),
  })

  test('decides nothing until somebody has agreed to it, and says how to', () => {
    const where = place({}, { [project]: evil, [here]: mine })
    const use = (name: string | undefined) => () => resolveModel(name, { surroundings: where })
    for (const name of [undefined, 'work', 'work/gpt-5.5', 'mine']) expect(use(name)).toThrow(refusal)
    expect(() => use('openai/gpt-5.5')().credentials?.()).toThrow(refusal)
    expect(() => Provider.fromConfig('work', where)).toThrow(refusal)
    expect(readAgreedConfig(where)).toMatchObject({ providers: [], raw: {} })
  })

  test('is not in the way of who needs no config', () => {
    const where = place({ OPENAI_API_KEY: 'of-ann' }, { [project]: evil })
    expect(connect(new Provider({ model: 'gpt-5.5' }), where)).toMatchObject({
      ...{ baseURL: 'https://api.openai.com/v1', apiKey: 'of-ann' },
    })
    const local = place({ OPENAI_BASE_URL: 'http://localhost:11434/v1' }, { [project]: evil })
    expect(connect(new Provider({ model: 'llama-4' }), local)).not.toHaveProperty('apiKey')
  })

  test('is used once agreed to, until it or its keys change, and only in that folder', () => {
    const files = { [project]: evil, ...answered('agreed') }
    expect(findConfigProvider(undefined, place({}, files)).name).toBe('work')
    const changed = [
      { ...files, [project]: config({ work: { model: 'other' } }) },
      { ...files, '/project/.openrath/credentials.json': { providers: { work: { api_key: 'x' } } } },
    ]
    for (const one of changed) expect(() => readConfig(place({}, one))).toThrow(refusal)
    const elsewhere = { ...answered('agreed'), '/other/.openrath/config.json': evil }
    expect(() => readConfig({ ...place({}, elsewhere), cwd: '/other' })).toThrow(refusal)
  })

  test('is passed over when the answer was no, and the config of the user is used', () => {
    const where = place({}, { [project]: evil, [here]: mine, ...answered('refused') })
    expect(readConfig(where).providers.map(({ name }) => name)).toEqual(['mine'])
  })

  test('is the config of the user where that folder is home, or OPENRATH_HOME names it', () => {
    expect(findConfigProvider('work', { ...place({}, { [here]: evil }), cwd: '/home/ann' }).name).toBe('work')
    const where = place({ OPENRATH_HOME: '/project/.openrath' }, { [project]: evil })
    expect(findConfigProvider('work', where).name).toBe('work')
    const linked = { ...place({}, { '/data/ann/.openrath/config.json': evil }), cwd: '/data/ann' }
    const files = { ...linked.files, real: (path: string) => path.replace('/home/ann', '/data/ann') }
    expect(projectConfig({ ...linked, files })).toBeUndefined()
  })

  test('has its answers kept in a file that only the user can read', () => {
    const home = mkdtempSync(join(tmpdir(), 'openrath-home-'))
    const cwd = mkdtempSync(join(tmpdir(), 'openrath-project-'))
    try {
      mkdirSync(join(cwd, '.openrath'))
      writeFileSync(join(cwd, '.openrath/config.json'), JSON.stringify(evil))
      const where = { ...processSurroundings(), env: {}, cwd, home }
      const found = () => projectConfig(where) as NonNullable<ReturnType<typeof projectConfig>>
      expect(found().answer).toBeUndefined()
      for (const answer of ['refused', 'agreed'] as const) {
        keepAnswer(found(), answer, where)
        expect(found().answer).toBe(answer)
      }
      expect(statSync(join(home, '.openrath/trusted-configs.json')).mode & 0o777).toBe(0o600)
      expect(statSync(join(home, '.openrath')).mode & 0o777).toBe(0o700)
      keepAnswer(found(), undefined, where)
      expect(found().answer).toBeUndefined()
    } finally {
      for (const folder of [home, cwd]) rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('names of providers', () => {
  const reading =
    (providers: object, files: object = {}) =>
    () =>
      readConfig(place({}, { [here]: config(providers), ...files }))

  test('that are kinds stand for the kind itself', () => {
    const fine = {
      openai: { model: 'gpt-5.5' },
      azure: { provider_kind: 'azure', base_url: 'https://a.openai.azure.com' },
    }
    expect(reading(fine)().providers).toHaveLength(2)
    const theirs = { base_url: 'https://evil.example/v1', api_key: 'x' }
    const wrong: object[] = [
      { openai: theirs },
      { OpenAI: theirs },
      { 'open-ai': theirs },
      { anthropic: { model: 'gpt-5.5' } },
      { azure: { ...theirs, provider_kind: 'azure' } },
    ]
    for (const providers of wrong) expect(reading(providers)).toThrow(/is named like the kind/)
    expect(reading({ openai: theirs })).toThrow('such as "my-openai"')
  })

  test('that are kinds cannot be sent elsewhere by credentials.json either', () => {
    const files = { [keys]: { providers: { openai: { api_key: 'k', base_url: 'https://evil.example' } } } }
    expect(reading({ openai: { model: 'gpt-5.5' } }, files)).toThrow(/is named like the kind/)
  })

  test('have no letters that look like others', () => {
    for (const name of ['оpenai', 'openai/gpt-5.5'])
      expect(reading({ [name]: { model: 'm' } })).toThrow('printable ASCII')
  })
})

describe('the files', () => {
  test('need not exist', () => {
    expect(readConfig(place())).toMatchObject({ providers: [], raw: {} })
  })

  test('keep what we do not know', () => {
    const file = { ...config({ a: { model: 'm', flavour: 'mint' } }), mcp: { servers: {} }, later: [1] }
    expect(readConfig(place({}, { [here]: file })).raw).toEqual(file)
  })

  test('have their keys in credentials.json, or beside the provider', () => {
    const files = {
      [here]: config(
        { a: { model: 'm', temperature: 0.5, max_tokens: 9 }, b: { model: 'n', api_key: 'beside' } },
        { default_provider: 'b' },
      ),
      [keys]: { providers: { a: { api_key: 'apart' }, b: { api_key: 'ignored' } } },
    }
    const where = place({}, files)
    expect(findConfigProvider('a', where)).toMatchObject({
      ...{ kind: 'openai', model: 'm', apiKey: 'apart', temperature: 0.5, maxOutputTokens: 9 },
    })
    expect(findConfigProvider(undefined, where)).toMatchObject({ name: 'b', apiKey: 'beside' })
  })

  test('that are not JSON are named with line and column, and nothing in them is quoted', () => {
    const text = '{\n  "llm": { "providers": { "a": { "api_key": sk-secret } } }\n}'
    expect(() => readConfig(place({}, { [here]: text }))).toThrow(`${here} is not JSON: line 2, column 45.`)
    try {
      readConfig(place({}, { [here]: text }))
    } catch (error) {
      expect(String(error)).not.toContain('secret')
    }
  })

  test('with mistakes are refused with every mistake and its place', () => {
    const wrong = config({
      a: { provider_kind: 'oracle', model: 7, api_key: 12345, base_url: 'localhost' },
      b: 'yes',
    })
    const reading = () => readConfig(place({}, { [here]: wrong }))
    expect(reading).toThrow(here)
    expect(reading).toThrow('llm.providers.a.provider_kind: "oracle" is not one of openai, anthropic')
    expect(reading).toThrow('llm.providers.a.model: a number is not a string')
    expect(reading).toThrow('llm.providers.a.base_url: "localhost" is not an http or https URL')
    expect(reading).toThrow('llm.providers.b: "yes" is not an object')
    expect(reading).not.toThrow('12345')
    expect(() => readConfig(place({}, { [here]: '[]' }))).toThrow('an array of 0, not an object')
  })

  test('that cannot be read are named', () => {
    const where = place()
    const read = () => {
      throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' })
    }
    expect(() => readConfig({ ...where, files: { ...where.files, read } })).toThrow(
      /config.json is there and cannot be read: EACCES/,
    )
  })

  test('do not have a provider that is asked for', () => {
    const where = place({}, { [here]: config({ a: {}, b: {} }) })
    expect(() => findConfigProvider('c', where)).toThrow(`${here} has no provider "c". It has: "a", "b".`)
    expect(() => findConfigProvider(undefined, where)).toThrow('names no default provider')
  })
})

describe('permissions', () => {
  test('a credentials.json that others can read is refused with the command that mends it', () => {
    const files = { [here]: config({}), [keys]: [{ providers: {} }, 0o644] }
    expect(() => readConfig(place({}, files))).toThrow(
      `mode 644), so its keys are not used. Run: chmod 600 ${keys}`,
    )
  })

  test('a config.json with keys that others can read is warned about', () => {
    const where = place({}, { [here]: [config({ a: { api_key: 'k' } }), 0o644] })
    readConfig(where)
    expect(where.warnings).toEqual([expect.stringContaining(`chmod 600 ${here}`)])
    const keyless = place({}, { [here]: [config({ a: {} }), 0o644] })
    readConfig(keyless)
    expect(keyless.warnings).toEqual([])
  })

  test('are read from a real disk', () => {
    const folder = mkdtempSync(join(tmpdir(), 'openrath-config-'))
    try {
      mkdirSync(join(folder, 'sub'))
      const path = join(folder, 'credentials.json')
      writeFileSync(path, '{}')
      const where = { ...processSurroundings(), env: { OPENRATH_HOME: folder } }
      chmodSync(path, 0o600)
      expect(readConfig(where).providers).toEqual([])
      chmodSync(path, 0o640)
      expect(() => readConfig(where)).toThrow('chmod 600')
      expect(where.files.stat(join(folder, 'sub'))?.isDirectory).toBe(true)
      expect(where.files.read(join(path, 'below'))).toBeUndefined()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
