import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Digest } from '../../src/base/digest.ts'
import { copyJson, type Json } from '../../src/base/json.ts'
import { decodeAll, decodePreview, encode, inlineLimit } from '../../src/store/encode.ts'
import { anyJson, anyText } from '../session/arbitrary.ts'

/** Any JSON, some of its texts repeated until they no longer fit in a row, some of its objects like references. */
const large: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>(again => ({
  value: fc.oneof(
    { depthSize: 'small' },
    anyJson,
    anyText.map(text => `${text}x`.repeat(inlineLimit)),
    fc.base64String({ minLength: 4, maxLength: 8 }).map(text => ({ data: text.repeat(inlineLimit) })),
    fc.array(again('value'), { maxLength: 3 }),
    fc
      .array(fc.tuple(fc.constantFrom('$blob', 'value', 'data', '__proto__', 'as'), again('value')), {
        maxLength: 3,
      })
      .map(entries => Object.fromEntries(entries) as Json),
  ),
})).value

async function roundTrip(values: readonly Json[]): Promise<Json[]> {
  const encoded = values.map(encode)
  const blobs = new Map<Digest, Uint8Array>()
  for (const { blobs: rows } of encoded) for (const { id, bytes } of rows) blobs.set(id, bytes)
  return decodeAll(
    encoded.map(({ text }) => text),
    async ids => new Map(ids.map(id => [id, blobs.get(id) as Uint8Array])),
  )
}

test('what is encoded comes back the same', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(large, { maxLength: 3 }), async values => {
      const copies = values.map(value => copyJson(value, '', []))
      expect(await roundTrip(copies)).toEqual(copies)
    }),
    { numRuns: 150 },
  )
})

test('a row stays small whatever the payload', () => {
  const text = 'some output\n'.repeat(100_000)
  const many = Array.from({ length: 50_000 }, (_, i) => ({ i }))
  const { text: row, blobs } = encode({ kind: 'note', data: { text, many } })
  expect(row.length).toBeLessThan(4096)
  expect(blobs.length).toBe(2)
})

test('a small value is its JSON and has no blobs', () => {
  const value = { kind: 'user', content: [{ type: 'text', text: 'hi' }] }
  expect(encode(value)).toEqual({ text: JSON.stringify(value), blobs: [], keeps: [] })
})

test('base64 of bytes lies in the blob as those bytes', () => {
  const bytes = new Uint8Array(30_000).fill(9)
  const { blobs } = encode({ data: Buffer.from(bytes).toString('base64') })
  expect(blobs.map(blob => [...blob.bytes.subarray(0, 3), blob.bytes.length])).toEqual([[9, 9, 9, 30_000]])
})

test('a preview shows the beginning of what lies out of line', () => {
  const text = `first words ${'x y '.repeat(20_000)}`
  const { text: row } = encode({ kind: 'note', data: { text, like: { $blob: 'x' } } })
  const preview = decodePreview(row) as { data: { text: string; like: Json } }
  expect(preview.data.text).toBe(text.slice(0, 512))
  expect(preview.data.like).toEqual({ $blob: 'x' })
})

test('a blob that is missing or altered is corruption, and so is a row that is no JSON', async () => {
  const { text } = encode({ long: 'l o n g '.repeat(10_000) })
  const corrupt = { code: 'store-corrupt' }
  await expect(decodeAll([text], async () => new Map())).rejects.toMatchObject(corrupt)
  const altered = async (ids: readonly Digest[]) => new Map(ids.map(id => [id, new Uint8Array(5)]))
  await expect(decodeAll([text], altered)).rejects.toMatchObject(corrupt)
  await expect(decodeAll(['{'], altered)).rejects.toMatchObject(corrupt)
})
