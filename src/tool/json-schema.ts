import { dereference, type Schema, type SchemaDraft, Validator } from '@cfworker/json-schema'
import { show } from '../base/errors.ts'
import { isPlainObject, type Json, type JsonObject, type Problem } from '../base/json.ts'

/** Says what is wrong with a value; nothing when it fits. */
export type Validate = (value: Json, root: string) => readonly Problem[]

/** Compiles a JSON Schema once. Throws nothing: ask `schemaProblems` first. */
export function compileSchema(schema: JsonObject): Validate {
  // The validator writes notes into the schema it is given, so it gets a copy of its own.
  const validator = new Validator(structuredClone(schema) as Schema, draftOf(schema), false)
  const fits = plainSchema(schema)
  return (value, root) => {
    if (fits?.(value)) return none
    const { valid, errors } = validator.validate(value)
    if (valid) return none
    const problems = errors.filter(tellsSomething).map(({ keyword, instanceLocation, error }) => ({
      path: pathOf(pointer(instanceLocation), root),
      message: keyword === 'false' ? 'is not allowed here' : error,
    }))
    return problems.length > 0 ? problems : [{ path: root, message: 'does not fit the schema' }]
  }
}

const none: readonly Problem[] = Object.freeze([])

/** `items[2].name` under a root name. */
export function pathOf(segments: readonly (string | number)[], root: string): string {
  let path = root
  for (const segment of segments) {
    if (/^\d+$/.test(String(segment))) path += `[${segment}]`
    else path += /^[\w$-]+$/.test(String(segment)) ? `.${segment}` : `[${JSON.stringify(segment)}]`
  }
  return path
}

/** What makes a schema unusable: the mistakes that a validator meets only when a value reaches them. */
export function schemaProblems(schema: unknown, root = 'schema'): readonly Problem[] {
  const problems: Problem[] = []
  if (!isPlainObject(schema)) return [{ path: root, message: `must be an object, not ${show(schema)}` }]
  check(schema, root, problems, 0)
  return [...problems, ...referenceProblems(schema as Schema, root)]
}

/** The same schema without regular expressions, for schemas written by strangers: a hostile one can stop the process. */
export function withoutPatterns(schema: JsonObject): JsonObject {
  return strip(schema, false) as JsonObject
}

function strip(value: Json, isMap: boolean): Json {
  if (Array.isArray(value)) return value.map(member => strip(member, false))
  if (!isPlainObject(value)) return value
  // A property may be called `__proto__`.
  const kept: Record<string, Json> = Object.create(null)
  for (const [key, member] of Object.entries(value)) {
    if (!isMap && (key === 'pattern' || key === 'patternProperties')) continue
    // A property may well be called `pattern`; values in enum, const and default are data.
    kept[key] = !isMap && dataKeywords.has(key) ? member : strip(member, !isMap && mapKeywords.has(key))
  }
  // Without its patterns a closed object would refuse what they allowed.
  if (!isMap && value.patternProperties !== undefined) {
    delete kept.additionalProperties
    delete kept.unevaluatedProperties
  }
  return kept
}

const mapKeywords = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'patternProperties'])
const listKeywords = new Set(['anyOf', 'allOf', 'oneOf', 'prefixItems'])
const schemaKeywords = new Set(
  'items additionalItems additionalProperties unevaluatedItems unevaluatedProperties contains propertyNames not if then else'.split(
    ' ',
  ),
)
const dataKeywords = new Set(['enum', 'const', 'default', 'examples', 'required'])
const types = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])
const maximumDepth = 128

function check(schema: unknown, path: string, problems: Problem[], depth: number): void {
  if (typeof schema === 'boolean') return
  if (!isPlainObject(schema) || depth > maximumDepth) {
    problems.push({ path, message: depth > maximumDepth ? 'is nested too deeply' : 'is not a schema' })
    return
  }
  const add = (key: string, message: string) => problems.push({ path: `${path}.${key}`, message })
  for (const [key, value] of Object.entries(schema)) {
    const deeper = (member: unknown, name: string) =>
      check(member, `${path}.${key}${name}`, problems, depth + 1)
    if (key === 'type' && ![value].flat().every(name => types.has(name as string))) {
      add(key, `${show(value)} is not a type`)
    } else if (key === 'pattern') {
      if (!compiles(value)) add(key, `${show(value)} is not a regular expression`)
    } else if (key === 'required' || key === 'enum') {
      if (!Array.isArray(value)) add(key, `must be an array, not ${show(value)}`)
    } else if (mapKeywords.has(key)) {
      if (!isPlainObject(value)) add(key, `must be an object, not ${show(value)}`)
      for (const name of isPlainObject(value) ? Object.keys(value) : []) {
        if (key === 'patternProperties' && !compiles(name))
          add(key, `${show(name)} is not a regular expression`)
        deeper((value as Record<string, unknown>)[name], `.${name}`)
      }
    } else if (listKeywords.has(key) || (key === 'items' && Array.isArray(value))) {
      if (!Array.isArray(value)) add(key, `must be an array, not ${show(value)}`)
      else for (const [i, member] of value.entries()) deeper(member, `[${i}]`)
    } else if (schemaKeywords.has(key)) deeper(value, '')
  }
}

function compiles(pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false
  try {
    return Boolean(new RegExp(pattern, 'u'))
  } catch {
    return false
  }
}

/** References that lead nowhere, and ids that are none or there twice, as the validator looks them up itself. */
function referenceProblems(schema: Schema, root: string): Problem[] {
  try {
    const known = dereference(structuredClone(schema)) as Record<string, Schema>
    const lost = Object.entries(known).filter(([, { __absolute_ref__: leads }]) => leads && !(leads in known))
    return lost.map(([uri, { $ref }]) => ({
      path: `${pathOf(pointer(uri.split('#')[1] ?? ''), root)}.$ref`,
      message: `${show($ref)} leads nowhere in this schema`,
    }))
  } catch (error) {
    return [{ path: root, message: error instanceof Error ? error.message : show(error) }]
  }
}

function draftOf(schema: JsonObject): SchemaDraft {
  const named = typeof schema.$schema === 'string' ? schema.$schema : ''
  if (named.includes('draft-04')) return '4'
  if (named.includes('draft-07') || named.includes('draft-06')) return '7'
  return named.includes('2019-09') ? '2019-09' : '2020-12'
}

/** Leaves out the steps on the way to a problem, and the alternatives that a failed union tried one by one. */
function tellsSomething(error: { keyword: string; keywordLocation: string }): boolean {
  const isStep = /^(properties|patternProperties|items|prefixItems|additionalProperties|allOf|\$ref)$/
  return !isStep.test(error.keyword) && !/\/(anyOf|oneOf|if|not)\//.test(error.keywordLocation)
}

function pointer(location: string): string[] {
  return location
    .replace(/^#\/?/, '')
    .split('/')
    .filter(segment => segment !== '')
    .map(segment => decode(segment).replaceAll('~1', '/').replaceAll('~0', '~'))
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Whether a value fits a schema, without a word about what is wrong. */
type Fits = (value: Json) => boolean

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
