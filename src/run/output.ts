import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Json, JsonObject } from '../base/json.ts'
import { compileOutput, writtenAsJson } from '../tool/schema.ts'

/** The shape that an agent's last answer must have. */
export interface OutputSpec {
  readonly name: string
  /** What the model is shown. */
  readonly schema: JsonObject
  /** What is wrong with a text as an answer; undefined when it fits. */
  problemsWith(text: string): Promise<string | undefined>
}

export function outputSpec(schema: StandardSchemaV1 | JsonObject, agent: string): OutputSpec {
  const compiled = compileOutput(schema, agent)
  return {
    name: 'output',
    schema:
      compiled.jsonSchema ?? writtenAsJson(schema as StandardSchemaV1, 'input', `The output of ${agent}`),
    async problemsWith(text) {
      let value: Json
      try {
        value = JSON.parse(withoutFence(text))
      } catch (error) {
        return `it is not JSON: ${(error as Error).message}`
      }
      const { problems } = await compiled.check(value, 'output')
      return problems?.map(({ path, message }) => `${path}: ${message}`).join('; ')
    },
  }
}

/** Some models wrap JSON in a Markdown fence even when told not to. */
function withoutFence(text: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(text)?.[1] ?? text
}
