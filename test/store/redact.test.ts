import { expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import type { Json } from '../../src/base/json.ts'
import type { ChunkBody } from '../../src/session/chunk.ts'
import { createRedactor, secretsOf } from '../../src/store/redact.ts'

const redactor = createRedactor({ KEY: 'sk-abcdefgh', LONGER: 'sk-abcdefgh-and-more', SHORT: 'abc' })

test('the variables whose names say secret are taken from an environment', () => {
  const value = 'a-long-enough-value'
  const secret = [
    'OPENAI_API_KEY',
    'APIKEY',
    'GITHUB_TOKEN',
    'db_password',
    'AWS_SECRET_ACCESS_KEY',
    'MY_SECRET',
  ]
  secret.push('GOOGLE_CREDENTIALS', 'PGPASSWORD', 'ANTHROPIC_AUTH_TOKEN')
  secret.push('GH_PAT', 'MYSQL_PWD', 'GPG_PASSPHRASE', 'AWS_ACCESS_KEY_ID', 'SENTRY_DSN', 'SESSION_COOKIE')
  secret.push('NPM_AUTH', 'npm_config__auth', 'PROXY_AUTH', 'SUPABASE_JWT', 'SITE_COOKIES')
  secret.push('DB_PASS', 'SSHPASS', 'API_KEYS', 'DOCKER_AUTH_CONFIG', 'AZURE_STORAGE_CONNECTION_STRING')
  const open = [
    'PWD',
    'OLDPWD',
    'SSH_AUTH_SOCK',
    'XAUTHORITY',
    'COMPASS',
    'BYPASS_CACHE',
    'PATTERN',
    'COOKIE_FILE',
    'AUTHOR',
    'PATH',
    'KEYBOARD',
    'TOKENIZER',
    'SSH_KEY_FILE',
    'TOKEN_URL',
    'AWS_KEY_ID',
    'HOME',
    'MONKEY',
  ]
  const environment = Object.fromEntries([...secret, ...open].map(name => [name, value]))
  expect(Object.keys(secretsOf({ ...environment, SHORT_KEY: 'abc', NO_KEY: undefined }))).toEqual(secret)
})

test('an address with a password is a secret, and a folder is none, whatever they are called', () => {
  const url = 'postgres://ann:hunter2@db.example/app'
  expect(
    secretsOf({ DATABASE_URL: url, SITE_URL: 'https://example.com/a:b@c', PROJECT_PWD: '/home/ann/project' }),
  ).toEqual({ DATABASE_URL: url })
})

test('how much of a text may be the beginning of a secret', () => {
  for (const [text, count] of [
    ['', 0],
    ['a s', 1],
    ['a sk-abc', 6],
    ['a sk-abcdefgh', 11],
    ['a sk-abcdefgh-and', 15],
    ['sk-sk-a', 4],
    ['a sk-abd', 0],
  ] as const)
    expect([text, redactor.unfinished(text)]).toEqual([text, count])
})

test('an error is copied without its secrets, and stays what it was', () => {
  class Refused extends TypeError {
    readonly header = { authorization: 'Bearer sk-abcdefgh' }
  }
  const inner = new Refused('no sk-abcdefgh')
  const outer = Object.assign(new AggregateError([inner], 'all', { cause: inner }), { session: redactor })
  inner.cause = outer
  const clean = redactor.error(outer)
  expect(clean).toBeInstanceOf(AggregateError)
  expect(clean.session).toBe(redactor)
  expect(clean.cause).toBeInstanceOf(Refused)
  expect(clean.errors[0]).toMatchObject({
    message: 'no [redacted:KEY]',
    header: { authorization: 'Bearer [redacted:KEY]' },
  })
  expect((clean.cause as Error).stack).toContain('no [redacted:KEY]')
  expect(inner.message).toBe('no sk-abcdefgh')
})

test('every occurrence is replaced, the longest secret first, and short ones never', () => {
  expect(redactor.text('a sk-abcdefgh b sk-abcdefgh-and-more c abc')).toBe(
    'a [redacted:KEY] b [redacted:LONGER] c abc',
  )
})

test('a secret with characters of a pattern is found as it is written', () => {
  const odd = 'a.b*c(d)[e]{f}|g^h$i\\j+k?'
  const { text } = createRedactor({ ODD: odd })
  expect(text(`<${odd}>`)).toBe('<[redacted:ODD]>')
  expect(text('aXbbbcd')).toBe('aXbbbcd')
})

test('what holds no secret is returned itself', () => {
  const value = { a: ['x', { b: 'y' }], data: 'QUJDREVGR0g=' }
  const body = { kind: 'note', at: 1, name: 'n', data: value } as ChunkBody
  const bytes = new Uint8Array([1, 2, 3])
  const error = new Error('plain')
  expect(redactor.json(value)).toBe(value)
  expect(redactor.chunk(body)).toBe(body)
  expect(redactor.bytes(bytes)).toBe(bytes)
  expect(redactor.error(error)).toBe(error)
})

test('names of members are cleaned, __proto__ among them', () => {
  const value = JSON.parse('{"__proto__":"sk-abcdefgh","sk-abcdefgh":1,"x":[["sk-abcdefgh"]]}')
  expect(JSON.stringify(redactor.json(value))).toBe(
    '{"__proto__":"[redacted:KEY]","[redacted:KEY]":1,"x":[["[redacted:KEY]"]]}',
  )
})

test.each([
  ['a quote', 'say "abcdefgh"'],
  ['a backslash', 'a\\b\\c\\d\\e\\f'],
  ['a line break', 'first line\nsecond'],
  ['a letter that JSON need not escape', 'pässwörd-ßß'],
  ['half of a character', 'abcdefgh\ud83d'],
])('a secret with %s is found in data as it is in text', (_, secret) => {
  const { json, chunk } = createRedactor({ ODD: secret })
  const value = { a: [{ b: `<${secret}>` }], [secret]: 1 }
  expect(json(value)).toEqual({ a: [{ b: '<[redacted:ODD]>' }], '[redacted:ODD]': 1 })
  const body = { kind: 'note', at: 1, name: 'n', data: value } as ChunkBody
  expect(chunk(body)).toMatchObject({ data: { a: [{ b: '<[redacted:ODD]>' }] } })
})

test('half of a character that data completes is found', () => {
  const { json } = createRedactor({ ODD: 'abcdefgh\ud83d' })
  expect(JSON.stringify(json({ a: 'abcdefgh\ud83d\ude00' }))).not.toContain('abcdefgh')
})

test('what is no JSON yet is cleaned all the same', () => {
  const value = { a: undefined, b: 'sk-abcdefgh' } as unknown as Json
  expect(redactor.json(value)).toEqual({ b: '[redacted:KEY]' })
})

test('a secret in short base64 is found, and base64 that holds none is left as it is written', () => {
  const clean = redactor.json({ data: btoa('k=sk-abcdefgh') }) as { data: string }
  expect(atob(clean.data)).toBe('k=[redacted:KEY]')
  for (const data of ['QR==', 'QUJD', '', 'not base64!']) expect(redactor.json({ data })).toEqual({ data })
})

test('bytes around a secret in binary data come through unharmed', () => {
  const given = Buffer.from([0xff, 0xc3, 0x28, ...Buffer.from('sk-abcdefgh'), 0x80, 0x00])
  const clean = Buffer.from(redactor.bytes(given))
  expect([...clean.subarray(0, 3), ...clean.subarray(-2)]).toEqual([0xff, 0xc3, 0x28, 0x80, 0x00])
  expect(clean.toString('latin1')).toContain('[redacted:KEY]')
})

test('an error is clean in its message, its data and its causes, and keeps its code', () => {
  const cause = new Error('while using sk-abcdefgh')
  const dirty = new RathError('store-failed', 'sk-abcdefgh failed', { cause, data: { key: ['sk-abcdefgh'] } })
  const clean = redactor.error(dirty) as RathError
  expect(clean).toMatchObject({
    code: 'store-failed',
    message: '[redacted:KEY] failed',
    data: { key: ['[redacted:KEY]'] },
  })
  expect((clean.cause as Error).message).toBe('while using [redacted:KEY]')
  expect(String(clean.stack)).not.toContain('sk-abcdefgh')
  expect((redactor.error(new Error('not "sk-abcdefg…')) as Error).message).toBe('not "[redacted]…')
})

test('a hook sees what is left after the secrets, and must return text', () => {
  const seen: string[] = []
  const hooked = createRedactor({ KEY: 'sk-abcdefgh' }, text => {
    seen.push(text)
    return text.toUpperCase()
  })
  expect(hooked.json({ a: 'x sk-abcdefgh' })).toEqual({ A: 'X [REDACTED:KEY]' })
  expect(seen).toContain('x [redacted:KEY]')
  expect(() => createRedactor({}, () => 7 as never).text('x')).toThrow(/must return a string/)
})
