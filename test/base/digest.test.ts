import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digestOf, sha256, sha256Portable } from '../../src/base/digest.ts'
import { anyText } from '../session/arbitrary.ts'

const node = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex')

describe.each([
  ['sha256', sha256],
  ['sha256Portable', sha256Portable],
])('%s', (_, digest) => {
  it('gives the digests of FIPS 180-2', () => {
    expect(digest('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    expect(digest('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
    expect(digest(new TextEncoder().encode('abc'))).toBe(digest('abc'))
  })

  it('equals node:crypto on any text and any bytes', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.uint8Array({ maxLength: 200 })), data => {
        expect(digest(data)).toBe(node(data))
      }),
    )
  })
})

describe('the digest of a value', () => {
  it('ignores the order of keys and nothing else', () => {
    expect(digestOf({ a: 1, b: [2] })).toBe(digestOf({ b: [2], a: 1 }))
    expect(digestOf({ a: 1, b: [2] })).not.toBe(digestOf({ a: 1, b: [2, null] }))
    expect(digestOf(['a', 'b'])).not.toBe(digestOf(['b', 'a']))
    expect(digestOf('\ud800')).not.toBe(digestOf('\ud801'))
    expect(digestOf({ a: 1 })).toBe(node('{"a":1}'))
  })
})
