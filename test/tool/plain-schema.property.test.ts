import { Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { compileSchema, plainSchema } from '../../src/tool/json-schema.ts'

const names = ['a', 'b', 'long name']
const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']
const simple = fc.constantFrom<Json>('x', '', 0, 1, -2, 1.5, true, false, null)

const { schema, value } = fc.letrec<{ schema: JsonObject; value: Json }>(tie => ({
  schema: fc.oneof(
    { maxDepth: 2 },
    keywords({
      type: fc.oneof(fc.constantFrom(...types), fc.subarray(types, { minLength: 1 })),
      description: fc.constant('about it'),
      enum: fc.array(simple, { minLength: 1, maxLength: 6 }),
      minimum: fc.integer({ min: -2, max: 1 }),
      maximum: fc.integer({ min: 0, max: 2 }),
    }),
    keywords({
      properties: fc.dictionary(fc.constantFrom(...names), tie('schema'), { maxKeys: 3 }),
      required: fc.subarray(names, { maxLength: 1 }),
      additionalProperties: fc.boolean(),
    }),
    keywords({
      items: tie('schema'),
      minItems: fc.integer({ min: 0, max: 2 }),
      maxItems: fc.integer({ min: 0, max: 2 }),
    }),
  ),
  value: fc.oneof(
    { maxDepth: 2 },
    simple,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...names, 'other'), tie('value'), { maxKeys: 4 }),
  ) as fc.Arbitrary<Json>,
}))

function keywords(model: { [keyword: string]: fc.Arbitrary<Json> }): fc.Arbitrary<JsonObject> {
  return fc.record(model, { requiredKeys: [] }) as fc.Arbitrary<JsonObject>
}

test('the quick look says of any schema it takes, and any value, what the full validator says', () => {
  let fitting = 0
  fc.assert(
    fc.property(schema, value, (given, instance) => {
      const fits = plainSchema(given)?.(instance)
      expect(fits).toBe(new Validator(structuredClone(given)).validate(instance).valid)
      if (fits) fitting++
    }),
    { numRuns: 4000 },
  )
  // Values that fit and values that do not were both there.
  expect(fitting).toBeGreaterThan(400)
  expect(fitting).toBeLessThan(3600)
})

test.each([
  ['pattern', { type: 'string', pattern: '^a' }],
  ['a reference', { $ref: '#/$defs/x', $defs: { x: { type: 'string' } } }],
  ['anyOf', { anyOf: [{ type: 'string' }] }],
  ['a list of schemas', { items: [{ type: 'string' }] }],
  ['an object among the choices', { enum: [{ a: 1 }] }],
  ['a keyword deep inside', { properties: { a: { items: { format: 'date' } } } }],
  ['a keyword with the name of a method', { toString: true }],
  ['a type that is none', { type: 'text' }],
])('it takes no schema with %s', (_, given) => {
  expect(plainSchema(given as Json)).toBeUndefined()
})

test('a property with the name of a method is looked for in the value itself', () => {
  const given = { type: 'object', properties: { constructor: { type: 'string' } } }
  expect(compileSchema(given)({}, 'arguments')).toEqual([])
  expect(compileSchema(given)({ constructor: 7 } as never, 'arguments')).toHaveLength(1)
})
