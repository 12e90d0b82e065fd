import type { StandardSchemaV1 } from '@standard-schema/spec'
import { RathError } from '../base/errors.ts'
import { isPlainObject, type Json, type JsonObject } from '../base/json.ts'
import { compileOutput, writtenAsJson } from '../tool/schema.ts'

/** The shape that an agent's last answer must have. */
export interface OutputSpec {
  readonly name: string
  /** What the model is shown. */
  readonly schema: JsonObject
  /** The value that a text stands for, or what is wrong with it as an answer. */
  read(text: string): Promise<Read>
}

export type Read =
  | { readonly value: unknown; readonly problem?: undefined }
  | { readonly problem: string; readonly value?: undefined }

export function outputSpec(schema: StandardSchemaV1 | JsonObject, agent: string): OutputSpec {
  const compiled = compileOutput(schema, agent)
  const written =
    compiled.jsonSchema ?? writtenAsJson(schema as StandardSchemaV1, 'input', `The output of ${agent}`)
  const isObject = written.type === 'object'
  return {
    name: 'output',
    schema: isObject ? written : inObject(written),
    async read(text) {
      let value: Json
      try {
        value = JSON.parse(withoutFence(text))
      } catch (error) {
        return { problem: `it is not JSON: ${(error as Error).message}` }
      }
      const checked = await compiled.check(isObject ? value : outOfObject(value), 'output')
      if (!checked.problems) return { value: checked.value }
      return { problem: checked.problems.map(({ path, message }) => `${path}: ${message}`).join('; ') }
    },
  }
}

export function invalidOutput(text: string, problem: string): RathError {
  return new RathError(
    'output-invalid',
    `The answer does not fit the asked output: ${problem}\nThe answer was: ${text.slice(0, 2000)}`,
    { data: { text: text.slice(0, 10_000) } },
  )
}

/** Providers take nothing but an object as the shape of an answer: a list, a choice or a text is the `value` of one. */
function inObject({ $schema, $defs, definitions, ...schema }: JsonObject): JsonObject {
  return {
    ...($schema !== undefined && { $schema }),
    type: 'object',
    properties: { value: moved(schema) },
    required: ['value'],
    additionalProperties: false,
    ...($defs !== undefined && { $defs: moved($defs) }),
    ...(definitions !== undefined && { definitions: moved(definitions) }),
  }
}

/** A schema that refers to itself lies elsewhere now; its definitions are where they were. */
function moved(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(moved)
  if (!isPlainObject(schema)) return schema
  const members = Object.entries(schema as JsonObject).map(([name, member]) => [
    name,
    name === '$ref' && typeof member === 'string'
      ? member.replace(/^#(?=\/|$)(?!\/(\$defs|definitions)\/)/, '#/properties/value')
      : moved(member),
  ])
  return Object.fromEntries(members)
}

/** Models that are not held to the shape leave the object away. */
function outOfObject(value: Json): Json {
  const isHolder = isPlainObject(value) && Object.keys(value).join() === 'value'
  return isHolder ? ((value as JsonObject).value as Json) : value
}

/** Some models wrap JSON in a Markdown fence even when told not to. Not one expression: that takes hours for a fence and a thousand line breaks. */
export function withoutFence(text: string): string {
  const trimmed = text.trim()
  const start = trimmed.indexOf('\n')
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```') || start < 0) return text
  const label = trimmed.slice(3, start).trim()
  return label === '' || label === 'json' ? trimmed.slice(start + 1, -3).trim() : text
}
