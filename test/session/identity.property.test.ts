import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from '../../src/base/json.ts'
import type { Chunk, ChunkInput, ChunkKind } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { anyChunk, anyLabel, anyObject, chunkOf, fieldsOf, kinds } from './arbitrary.ts'
import { note } from './make.ts'

const shared = { at: fc.nat(99), by: anyLabel, extras: anyObject }

describe.each(kinds)('the id of a %s chunk', kind => {
  it('changes with every field, and when an optional one is left out', () => {
    const fields = { ...shared, ...fieldsOf[kind].fields }
    const names = Object.keys(fields) as (keyof typeof fields)[]
    const complete = fc.record(fields)
    fc.assert(
      fc.property(complete, complete, fc.constantFrom(...names), (one, other, name) => {
        const first = recorded(kind, one)
        const second = recorded(kind, { ...one, [name]: other[name] })
        expect(first.id === second.id).toBe(canonicalJson({ ...first }) === canonicalJson({ ...second }))
        if (canonicalJson(field(first, name)) !== canonicalJson(field(second, name))) {
          expect(second.id).not.toBe(first.id)
        }
        if (name === 'at' || fieldsOf[kind].required.includes(name)) return
        expect(recorded(kind, { ...one, [name]: undefined }).id).not.toBe(first.id)
      }),
      { numRuns: 60 },
    )
  })

  it('depends on the chunk before it and on its branch', () => {
    fc.assert(
      fc.property(chunkOf(kind), chunk => {
        const start = Session.create('empty')
        const ids = [
          start.append(chunk),
          start.append(note('a'), chunk),
          start.append(note('b'), chunk),
          start.fork('a').append(chunk),
          start.fork('b').append(chunk),
        ].map(session => session.head)
        expect(new Set(ids).size).toBe(5)
        expect(start.append(chunk).head).toBe(ids[0])
      }),
      { numRuns: 30 },
    )
  })
})

describe('the id of a chunk', () => {
  it('is the same whether it was computed chunk by chunk or all at once, and in which call it was appended', () => {
    fc.assert(
      fc.property(fc.array(anyChunk, { minLength: 1, maxLength: 6 }), chunks => {
        let eager = Session.create('empty')
        for (const chunk of chunks) {
          eager = eager.append(chunk)
          expect(eager.head).toHaveLength(64)
        }
        const lazy = Session.create('empty').append(...chunks)
        expect(lazy.head).toBe(eager.head)
        expect(lazy.state).toBe(eager.state)
        expect(lazy.chunks.map(chunk => chunk.id)).toEqual(eager.chunks.map(chunk => chunk.id))
      }),
    )
  })

  it('does not depend on the order in which fields were written', () => {
    const start = Session.create('empty')
    const ab: ChunkInput = { kind: 'note', name: 'x', data: { a: 1, b: 2 }, at: 1 }
    const ba: ChunkInput = { at: 1, data: { b: 2, a: 1 }, name: 'x', kind: 'note' }
    expect(start.append(ab).head).toBe(start.append(ba).head)
  })
})

function recorded(kind: ChunkKind, fields: object): Chunk {
  const session = Session.create('empty').append({ kind, ...fields } as ChunkInput)
  return session.chunks.at(0) as Chunk
}

function field(chunk: Chunk, name: string): unknown {
  return (chunk as never as Record<string, unknown>)[name]
}
