import { isPlainObject, type Json, type JsonObject } from '../base/json.ts'

/** Whether a value fits a schema, without a word about what is wrong. */
export type Fits = (value: Json) => boolean

/** Keywords that say nothing about values. */
const notes = new Set(['$schema', '$comment', 'title', 'description', 'default', 'examples', 'deprecated'])

/**
 * A quick look for schemas of the usual kind: objects of typed properties, lists, choices, limits of numbers. The full validator knows every
 * keyword and describes each step; most arguments fit, and then nobody reads that. Nothing for a schema with any other keyword.
 */
export function plainSchema(schema: Json): Fits | undefined {
  if (schema === true) return () => true
  if (!isPlainObject(schema)) return undefined
  const rules: Fits[] = []
  for (const keyword of Object.keys(schema)) {
    if (notes.has(keyword)) continue
    const rule = Object.hasOwn(keywords, keyword)
      ? keywords[keyword]?.(schema[keyword] as Json, schema as JsonObject)
      : undefined
    if (rule === undefined) return undefined
    rules.push(rule)
  }
  return value => {
    for (const fits of rules) if (!fits(value)) return false
    return true
  }
}

type Rule = (given: Json, schema: JsonObject) => Fits | undefined

const keywords: { readonly [keyword: string]: Rule } = {
  type(given) {
    const types = (Array.isArray(given) ? given : [given]).map(name => byType[name as string])
    if (types.length === 1) return types[0]
    return types.every(fits => fits !== undefined) ? value => types.some(fits => fits(value)) : undefined
  },
  properties(given) {
    if (!isPlainObject(given)) return undefined
    const members = Object.entries(given as JsonObject).map(([name, schema]) => {
      return { name, fits: plainSchema(schema) }
    })
    if (!members.every((member): member is Member => member.fits !== undefined)) return undefined
    return value => {
      if (!isObject(value)) return true
      for (const { name, fits } of members)
        if (Object.hasOwn(value, name) && !fits(value[name] as Json)) return false
      return true
    }
  },
  required(given) {
    if (!Array.isArray(given)) return undefined
    return value => !isObject(value) || given.every(name => Object.hasOwn(value, name as string))
  },
  additionalProperties(given, { properties = {} }) {
    if (given === true) return () => true
    if (given !== false || !isPlainObject(properties)) return undefined
    const known = new Set(Object.keys(properties))
    return value => !isObject(value) || Object.keys(value).every(name => known.has(name))
  },
  items(given) {
    const fits = plainSchema(given)
    return fits && (value => !Array.isArray(value) || value.every(fits))
  },
  enum(given) {
    if (!Array.isArray(given) || !given.every(isSimple)) return undefined
    return value => given.includes(value)
  },
  minimum: limit((value, bound) => value >= bound),
  maximum: limit((value, bound) => value <= bound),
  minItems: size((length, bound) => length >= bound),
  maxItems: size((length, bound) => length <= bound),
}

interface Member {
  readonly name: string
  readonly fits: Fits
}

const byType: { readonly [name: string]: Fits | undefined } = {
  array: Array.isArray,
  boolean: value => typeof value === 'boolean',
  integer: value => Number.isInteger(value),
  null: value => value === null,
  number: value => typeof value === 'number',
  object: isObject,
  string: value => typeof value === 'string',
}

function limit(holds: (value: number, bound: number) => boolean): Rule {
  return given =>
    typeof given === 'number' ? value => typeof value !== 'number' || holds(value, given) : undefined
}

function size(holds: (length: number, bound: number) => boolean): Rule {
  return given =>
    typeof given === 'number' ? value => !Array.isArray(value) || holds(value.length, given) : undefined
}

function isSimple(value: Json): boolean {
  return typeof value !== 'object' || value === null
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
