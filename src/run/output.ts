import type { StandardSchemaV1 } from '@standard-schema/spec'
import { RathError } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
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
  return {
    name: 'output',
    schema:
      compiled.jsonSchema ?? writtenAsJson(schema as StandardSchemaV1, 'input', `The output of ${agent}`),
    async read(text) {
      let value: Json
      try {
        value = JSON.parse(withoutFence(text))
      } catch (error) {
        return { problem: `it is not JSON: ${(error as Error).message}` }
      }
      const checked = await compiled.check(value, 'output')
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

/** Some models wrap JSON in a Markdown fence even when told not to. */
function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(text)?.[1] ?? text
}
