import { describe, expect, it } from 'vitest'
import { RathError, show } from '../../src/base/errors.ts'

describe('a RathError', () => {
  it('carries its code, what follows from it, and its cause', () => {
    const cause = new Error('inner')
    const error = new RathError('format-newer', 'too new', { cause, data: { version: 9 } })
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'RathError', code: 'format-newer', retry: 'never', blame: 'caller' })
    expect(error.data).toEqual({ version: 9 })
    expect(error.cause).toBe(cause)
    expect('cause' in new RathError('unknown-chunk', 'none')).toBe(false)
  })
})

describe('a value shown in a message', () => {
  it.each([
    ['a "b"\n', '"a \\"b\\"\\n"'],
    [12n, '12n'],
    [undefined, 'undefined'],
    [null, 'null'],
    [Symbol('s'), 'Symbol(s)'],
    [[1, 2], 'an array of 2'],
    [new Date(0), 'a Date'],
    [{ a: 1, b: 2 }, '{ a, b }'],
    [Object.create(null), '{  }'],
    [function named() {}, 'function named'],
  ])('%o is short and plain', (value, text) => {
    expect(show(value)).toBe(text)
  })

  it('is never long', () => {
    expect(show('x'.repeat(10_000)).length).toBeLessThanOrEqual(80)
    const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key${i}`, i]))
    expect(show(wide).length).toBeLessThanOrEqual(80)
  })
})
