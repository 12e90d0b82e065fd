import { describe, expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { modelError, readRetryAfter } from '../../src/model/errors.ts'

const failing = { model: 'openai/gpt-5.5' }
const apiError = (statusCode: number | undefined, more: object = {}) =>
  Object.assign(new Error('No.'), { statusCode, requestBodyValues: { secret: 'prompt' }, ...more })

test.each([
  [400, 'model-rejected', 'never'],
  [401, 'model-unauthorized', 'never'],
  [402, 'model-quota-spent', 'never'],
  [403, 'model-unauthorized', 'never'],
  [404, 'model-missing', 'never'],
  [408, 'model-overloaded', 'after'],
  [409, 'model-overloaded', 'after'],
  [413, 'model-rejected', 'never'],
  [422, 'model-rejected', 'never'],
  [429, 'model-rate-limited', 'after'],
  [500, 'model-overloaded', 'after'],
  [503, 'model-overloaded', 'after'],
  [529, 'model-overloaded', 'after'],
] as const)('status %i is %s, to be tried again %s', (status, code, retry) => {
  const error = modelError(apiError(status), failing)
  expect(error).toMatchObject({ code, retry, data: { status, provider: 'openai', model: 'openai/gpt-5.5' } })
  expect(error.message).toContain('openai/gpt-5.5')
  expect(error.message).toContain(`status ${status}`)
})

describe('an error', () => {
  test('keeps neither the request nor a key', () => {
    const error = modelError(
      apiError(401, { message: 'Bad key sk-proj-abcdef123456, Bearer abcdef123456.' }),
      failing,
    )
    expect(error.message).not.toMatch(/abcdef/)
    expect(error.cause).toBeUndefined()
    expect(JSON.stringify(error.data)).not.toContain('prompt')
  })

  test('quotes neither the key that was sent, whatever it looks like, nor a password in an address', () => {
    const message = 'Token abc+def/0123456= is not for https://me:hunter2@host/v1.'
    const error = modelError(apiError(400, { message }), { ...failing, secrets: ['abc+def/0123456='] })
    expect(error.message).toContain('Token … is not for https://…@host/v1.')
  })

  test('of quota is not worth waiting for, although its status is 429', () => {
    const responseBody = JSON.stringify({
      error: { code: 'insufficient_quota', message: 'You exceeded your quota.' },
    })
    expect(modelError(apiError(429, { responseBody }), failing)).toMatchObject({
      code: 'model-quota-spent',
      retry: 'never',
      data: { reason: 'insufficient_quota' },
    })
  })

  test('names the reason that the provider gave, for programs', () => {
    const data = { error: { code: 'context_length_exceeded', message: 'Too long.' } }
    expect(modelError(apiError(400, { data }), failing).data.reason).toBe('context_length_exceeded')
  })

  test('of the network is unreachable before an answer and a broken stream in it', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const fetchFailed = new TypeError('fetch failed', { cause: refused })
    expect(modelError(fetchFailed, failing).code).toBe('model-unreachable')
    expect(modelError(apiError(undefined, { isRetryable: true, cause: refused }), failing).cause).toBe(
      refused,
    )
    expect(modelError(new TypeError('terminated'), { ...failing, started: true }).code).toBe(
      'model-broken-stream',
    )
    expect(modelError(apiError(200, { cause: new TypeError('terminated') }), failing).code).toBe(
      'model-broken-stream',
    )
  })

  test('of parsing is malformed', () => {
    const cause = Object.assign(new Error('Unexpected token <'), { name: 'AI_JSONParseError' })
    expect(modelError(apiError(200, { cause }), failing)).toMatchObject({
      code: 'model-malformed',
      retry: 'never',
    })
  })

  test('that is already ours stays as it is', () => {
    const error = new RathError('cancelled', 'Stopped.')
    expect(modelError(error, failing)).toBe(error)
  })

  test('in any other shape is still an error with a message', () => {
    for (const thrown of ['plain words', { message: 'plain words' }, new Error('plain words')]) {
      expect(modelError(thrown, failing)).toMatchObject({ code: 'model-rejected' })
      expect(modelError(thrown, failing).message).toContain('plain words')
    }
    for (const thrown of [undefined, null, 7, {}])
      expect(modelError(thrown, failing)).toBeInstanceOf(RathError)
  })
})

test.each([
  [{ 'retry-after': '2' }, 2000],
  [{ 'retry-after': '1.5' }, 1500],
  [{ 'retry-after': 'Wed, 21 Oct 2026 07:28:10 GMT' }, 10_000],
  [{ 'retry-after': 'Wed, 21 Oct 2026 07:00:00 GMT' }, 0],
  [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
  [{ 'retry-after': 'soon' }, undefined],
  [{}, undefined],
])('%j asks for %s ms', (headers, wait) => {
  expect(readRetryAfter(headers, () => Date.parse('Wed, 21 Oct 2026 07:28:00 GMT'))).toBe(wait)
})
