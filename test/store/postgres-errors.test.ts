import { expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { shownAddress, toConnectError, toStoreError } from '../../src/store/drivers/postgres/errors.ts'

const url = 'postgres://u@h/d'

function codeOf(error: object, convert = toStoreError): string {
  const converted = convert(Object.assign(new Error('as pg says'), error), url)
  expect(converted).toBeInstanceOf(RathError)
  expect((converted as RathError).message).toContain(url)
  return (converted as RathError).code
}

test('what the server says becomes an error that says what to do', () => {
  const states = {
    '25006': 'store-read-only',
    '28P01': 'store-failed',
    '3D000': 'store-failed',
    '40001': 'store-busy',
    '40P01': 'store-busy',
    '42501': 'store-failed',
    '53100': 'store-full',
    '53300': 'store-busy',
    '55P03': 'store-busy',
    '57P01': 'store-unreachable',
    '57P03': 'store-busy',
    '08006': 'store-unreachable',
    '22003': 'store-failed',
    XX001: 'store-corrupt',
    XX002: 'store-corrupt',
  }
  for (const [code, expected] of Object.entries(states)) {
    expect([code, codeOf({ code, severity: 'ERROR' })]).toEqual([code, expected])
  }
})

test('a broken connection is an unreachable store, however pg puts it', () => {
  for (const code of [
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ENOTFOUND',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'EAI_AGAIN',
  ]) {
    expect(codeOf({ code })).toBe('store-unreachable')
  }
  expect(codeOf({ message: 'Connection terminated unexpectedly' })).toBe('store-unreachable')
  expect(codeOf({ message: 'timeout exceeded when trying to connect' })).toBe('store-busy')
  expect(codeOf({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, toConnectError)).toBe('store-unreachable')
})

test('an error that is not of the database passes unchanged', () => {
  const error = new TypeError('a mistake in the code')
  expect(toStoreError(error, url)).toBe(error)
})

test('an address is shown without its password and its settings', () => {
  const shown = {
    'postgres://u:p@h:5/d?sslmode=require': 'postgres://u@h:5/d',
    'postgresql://h/d?password=p': 'postgresql://h/d',
    'postgres:///d?host=/run/postgresql&user=u&password=p': 'postgres:///d?host=/run/postgresql',
  }
  for (const [given, expected] of Object.entries(shown)) {
    expect(shownAddress(given)).toBe(expected)
  }
})
