import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configFolder, findConfigProvider, readConfig } from '../../src/model/config.ts'
import { processSurroundings } from '../../src/model/surroundings.ts'
import { config, place } from './places.ts'

const here = '/project/.openrath/config.json'
const keys = '/project/.openrath/credentials.json'
const home = '/home/ann/.openrath/config.json'

describe('the folder', () => {
  test('is OPENRATH_HOME, then .openrath here, then .openrath at home', () => {
    const files = { [here]: {}, [home]: {} }
    expect(configFolder(place({ OPENRATH_HOME: '~/rath' }, files))).toBe('/home/ann/rath')
    expect(configFolder(place({}, files))).toBe('/project/.openrath')
    expect(configFolder(place({}, { [home]: {} }))).toBe('/home/ann/.openrath')
  })

  test('must not be a file', () => {
    expect(() => configFolder(place({ OPENRATH_HOME: '/x' }, { '/x': '' }))).toThrow(
      /OPENRATH_HOME is "\/x", which is a file/,
    )
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
