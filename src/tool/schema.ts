import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { RathError, show } from '../base/errors.ts'
import {
  freezeJson,
  isPlainObject,
  type Json,
  type JsonObject,
  type Problem,
  refuse,
  toJson,
} from '../base/json.ts'
import { compileSchema, pathOf, schemaProblems } from './json-schema.ts'
import type { ToolSchema } from './spec.ts'

/** A schema ready for use: what the model is shown, and the check that gives the value to go on with. */
export interface CompiledSchema {
  /** Absent only where nobody needs it: an output schema that has no JSON Schema of its own. */
  readonly jsonSchema?: JsonObject
  /** The value as the schema makes it, defaults and transformations applied, or every problem with it. */
  check(value: Json, root: string): Checked | Promise<Checked>
}

export type Checked =
  | { readonly value: unknown; readonly problems?: undefined }
  | { readonly problems: readonly Problem[] }

/** Compiles the schema of a tool's arguments. `parameters` overrides the JSON Schema that the model is shown. */
export function compileInput(schema: ToolSchema, tool: string, parameters?: JsonObject): CompiledSchema {
  const compiled = compile(schema, `input of ${tool}`)
  const jsonSchema = parameters
    ? asWritten(parameters, 'parameters')
    : (compiled.jsonSchema ??
      writtenAsJson(schema as StandardSchemaV1, 'input', `The input of ${show(tool)}`))
  if (jsonSchema.type !== undefined && jsonSchema.type !== 'object') {
    throw new RathError(
      'invalid-argument',
      `The input of ${show(tool)} has the type ${show(jsonSchema.type)}; a tool takes an object, so give the value a name in one.`,
    )
  }
  return { ...compiled, jsonSchema }
}

export function compileOutput(schema: ToolSchema, tool: string): CompiledSchema {
  return compile(schema, `output of ${tool}`)
}

function isStandardSchema(schema: unknown): schema is StandardSchemaV1 {
  const isHolder = (typeof schema === 'object' && schema !== null) || typeof schema === 'function'
  return isHolder && '~standard' in schema && isPlainOrProxy(schema['~standard'])
}

function isPlainOrProxy(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function compile(schema: ToolSchema, what: string): CompiledSchema {
  if (isStandardSchema(schema)) return { check: (value, root) => checkStandard(schema, value, root) }
  if (!isPlainObject(schema)) {
    throw new RathError(
      'invalid-argument',
      `The ${what} must be a Standard Schema (zod, valibot, arktype) or a JSON Schema object, not ${show(schema)}.${hintFor(schema)}`,
    )
  }
  refuse('invalid-argument', `The ${what} is not a JSON Schema that can be used`, schemaProblems(schema))
  const jsonSchema = asWritten(schema, what)
  const validate = compileSchema(jsonSchema)
  return {
    jsonSchema,
    check(value, root) {
      const problems = validate(value, root)
      return problems.length > 0 ? { problems } : { value }
    },
  }
}

function checkStandard(schema: StandardSchemaV1, value: Json, root: string): Checked | Promise<Checked> {
  const result = schema['~standard'].validate(value)
  // Not `instanceof`: a promise of another library or realm would pass for a result without issues.
  return 'then' in result ? Promise.resolve(result).then(done => checked(done, root)) : checked(result, root)
}

function checked(result: StandardSchemaV1.Result<unknown>, root: string): Checked {
  if (!result.issues) return { value: result.value }
  const problems = result.issues.map(({ message, path = [] }) => {
    const segments = path.map(segment => (typeof segment === 'object' ? segment.key : segment))
    return { path: pathOf(segments.map(String), root), message }
  })
  return { problems }
}

/** The JSON Schema that a Standard Schema writes of itself (Standard JSON Schema: zod 4.2, arktype 2.1.28 and newer). */
export function writtenAsJson(schema: StandardSchemaV1, side: 'input' | 'output', what: string): JsonObject {
  const standard = schema['~standard'] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>
  const converter = standard.jsonSchema
  if (!converter) throw cannotWrite(what, standard.vendor)
  const failures: unknown[] = []
  for (const target of ['draft-2020-12', 'draft-07'] as const) {
    try {
      return asWritten(converter[side]({ target }), what)
    } catch (failure) {
      failures.push(failure)
    }
  }
  const reason = failures[0] instanceof Error ? failures[0].message : show(failures[0])
  throw new RathError(
    'invalid-argument',
    `${what} cannot be written as JSON Schema (${reason}); use types that JSON has, or give the JSON Schema as parameters.`,
    { cause: failures[0] },
  )
}

/** A frozen copy with its keys in the order they were written: models read the first property first. */
function asWritten(schema: object, what: string): JsonObject {
  toJson(schema, what)
  return freezeJson(JSON.parse(JSON.stringify(schema)) as JsonObject)
}

function cannotWrite(what: string, vendor: string): RathError {
  const mend: Record<string, string> = {
    zod: 'update zod to 4.2 or newer',
    valibot: 'wrap the schema: toStandardJsonSchema(schema) of @valibot/to-json-schema 1.5 or newer',
    arktype: 'update arktype to 2.1.28 or newer',
  }
  const first = mend[vendor] ?? `use a version of ${vendor} that implements Standard JSON Schema`
  return new RathError(
    'invalid-argument',
    `${what} is a ${vendor} schema that cannot say what it looks like as JSON Schema: ${first}, or give the JSON Schema as parameters.`,
    { data: { vendor } },
  )
}

function hintFor(schema: unknown): string {
  const isOldZod = typeof schema === 'object' && schema !== null && '_def' in schema
  return isOldZod ? ' It looks like a zod schema older than 3.24: update zod to 4.2 or newer.' : ''
}
