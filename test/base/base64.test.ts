import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromBase64, isBase64, toBase64 } from '../../src/base/base64.ts'

describe('base64', () => {
  it('equals Buffer on any bytes, and back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
        const text = toBase64(bytes)
        expect(text).toBe(Buffer.from(bytes).toString('base64'))
        expect(isBase64(text)).toBe(true)
        expect(fromBase64(text)).toEqual(bytes)
      }),
    )
  })

  it('takes more bytes than a function takes arguments', () => {
    const bytes = new Uint8Array(300_000).fill(7)
    expect(fromBase64(toBase64(bytes))).toEqual(bytes)
  })

  it('encodes only the bytes of a view, not its whole buffer', () => {
    expect(toBase64(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))).toBe('AgM=')
  })

  it.each(['A', 'AA', 'AAA', 'A===', 'A=AA', 'AA==\n', 'AA-_', 'AA==AAAA', 'data:,'])('is not %j', text => {
    expect(isBase64(text)).toBe(false)
  })
})
