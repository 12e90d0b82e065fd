import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, copyJson, type Problem, toJson } from '../../src/base/json.ts'
import { anyJson } from '../session/arbitrary.ts'
import { refusal } from '../session/make.ts'

describe('canonical JSON', () => {
  it('equals the reference implementation of RFC 8785 on well-formed data', () => {
    fc.assert(
      fc.property(anyJson, value => {
        fc.pre(JSON.stringify(value).isWellFormed() && !/\\ud[89a-f]/.test(JSON.stringify(value)))
        expect(canonicalJson(value)).toBe(canonicalize(value))
      }),
      { numRuns: 500 },
    )
  })

  it('writes the sample of RFC 8785, section 3.2.2', () => {
    const sample =
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}'
    expect(canonicalJson(JSON.parse(sample))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  it('sorts keys by UTF-16 code unit, as in RFC 8785, section 3.2.3', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6']
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33']
    const text = canonicalJson(Object.fromEntries(keys.map(key => [key, 0])))
    expect(text).toBe(`{${sorted.map(key => `${JSON.stringify(key)}:0`).join(',')}}`)
    expect(canonicalJson({ 9: 0, 10: 0 })).toBe('{"10":0,"9":0}')
  })

  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('writes the number %s of RFC 8785, appendix B, as %s', (bits, text) => {
    const number = Buffer.from(bits, 'hex').readDoubleBE()
    expect(canonicalJson(toJson(number, 'number'))).toBe(text)
  })

  it('tells lone surrogates apart, which a plain UTF-8 encoding would not', () => {
    expect(canonicalJson('\ud800')).toBe('"\\ud800"')
    expect(canonicalJson('\udfff')).toBe('"\\udfff"')
  })
})

describe('a copy of JSON data', () => {
  it('equals its source and shares nothing with it', () => {
    fc.assert(
      fc.property(anyJson, value => {
        const copy = toJson(value, 'value')
        expect(copy).toEqual(JSON.parse(JSON.stringify(value)))
        expectDeepFrozen(copy)
      }),
    )
  })

  it('keeps __proto__ as data and pollutes nothing', () => {
    const copy = toJson(JSON.parse('{"__proto__":{"polluted":1},"a":{"__proto__":null}}'), 'value')
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"polluted":1},"a":{"__proto__":null}}')
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect('polluted' in {}).toBe(false)
  })

  it('leaves out undefined members as JSON does, and makes -0 the 0 it would become', () => {
    expect(toJson({ a: undefined, b: 1 }, 'value')).toEqual({ b: 1 })
    expect(Object.is(toJson(-0, 'value'), 0)).toBe(true)
  })

  it('names everything that is not JSON, all at once', () => {
    const odd = {
      date: new Date(0),
      list: [1, undefined],
      big: 1n,
      nan: Number.NaN,
      map: new Map(),
      run() {},
    }
    const error = refusal(() => toJson(odd, 'args'))
    expect(error.code).toBe('invalid-json')
    expect(error.data.paths).toEqual([
      'args.big',
      'args.date',
      'args.list[1]',
      'args.map',
      'args.nan',
      'args.run',
    ])
    expect(error.message).toContain('args.date: a Date is not JSON; convert it to plain data first')
    expect(error.message).toContain('args.nan: NaN is not a JSON number; use null or a string')
  })

  it('lists twenty problems and counts the others', () => {
    const error = refusal(() => toJson(Array(30).fill(undefined), 'list'))
    expect(error.message.split('\n')).toHaveLength(22)
    expect(error.message).toContain('… and 10 more')
  })

  it('refuses data that holds itself, even many times over', () => {
    const knot: Record<string, unknown> = {}
    for (const key of ['a', 'b', 'c']) knot[key] = knot
    expect(refusal(() => toJson(knot, 'knot')).message).toContain('or holds itself')
  })

  it('takes 256 levels and refuses 257', () => {
    const nested = (levels: number) => {
      let value: unknown = 1
      for (let i = 0; i < levels; i++) value = [value]
      return value
    }
    const problems: Problem[] = []
    copyJson(nested(256), 'value', problems)
    expect(problems).toEqual([])
    copyJson(nested(257), 'value', problems)
    expect(problems).toHaveLength(1)
  })
})

function expectDeepFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  expect(Object.isFrozen(value)).toBe(true)
  for (const key of Object.keys(value)) expectDeepFrozen((value as Record<string, unknown>)[key])
}
