import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { note } from './make.ts'

const names = ['a', 'b', 'c', 'd', 'e']
const chunks = Session.create('empty').append(...names.map(note)).chunks

describe('the list of chunks', () => {
  it('reads like an array, with any index', () => {
    const index = fc.oneof(
      fc.integer({ min: -7, max: 7 }),
      fc.constantFrom(1.5, -0.5, -1.5, Number.NaN, 1 / 0, -1 / 0),
    )
    fc.assert(
      fc.property(index, index, (start, end) => {
        expect(chunks.at(start)?.text).toBe(names.at(start))
        expect(chunks.slice(start, end).map(chunk => chunk.text)).toEqual(names.slice(start, end))
        expect(chunks.slice(start).map(chunk => chunk.text)).toEqual(names.slice(start))
      }),
    )
  })

  it('is printed as the list that it is', () => {
    expect(inspect(chunks)).toBe(inspect([...chunks]))
  })

  it('iterates, maps, filters and becomes JSON in order', () => {
    expect([...chunks].map(chunk => chunk.text)).toEqual(names)
    expect(chunks.map((chunk, i) => `${i}${chunk.text}`)).toEqual(['0a', '1b', '2c', '3d', '4e'])
    expect(chunks.filter((_, i) => i % 2 === 1).map(chunk => chunk.text)).toEqual(['b', 'd'])
    expect(chunks.flatMap(chunk => [chunk.text, '-'])).toEqual(names.flatMap(name => [name, '-']))
    expect(chunks.find(chunk => chunk.text > 'b')?.text).toBe('c')
    expect(chunks.findLast(chunk => chunk.text < 'd')?.text).toBe('c')
    expect(chunks.findLast(() => false)).toBeUndefined()
    expect(JSON.parse(JSON.stringify(chunks))[4]).toMatchObject({ name: 'e', id: chunks.at(-1)?.id })
  })

  it('is empty on an empty session', () => {
    const none = Session.create('empty').chunks
    expect([none.length, none.at(0), none.at(-1), [...none], none.slice()]).toEqual([
      0,
      undefined,
      undefined,
      [],
      [],
    ])
  })
})

describe('a very long chain', () => {
  let long = Session.create('empty')
  for (let i = 0; i < 200_000; i++) long = long.append({ kind: 'note', name: `n${i}`, at: i })

  it('reaches any chunk by its index', () => {
    fc.assert(
      fc.property(fc.nat(199_999), i => {
        expect(long.chunks.at(i)).toMatchObject({ name: `n${i}`, index: i })
      }),
      { numRuns: 300 },
    )
  })

  it('computes its digests without running out of stack', () => {
    expect(long.head).toMatch(/^[0-9a-f]{64}$/)
    expect(long.state).toBe(Session.create('empty').state)
    expect(long.rewind(100_000).head).toBe(long.chunks.at(100_000)?.id)
  })
})
