import type { Json } from '../base/json.ts'
import { refuse } from '../base/json.ts'
import type { Session } from '../session/session.ts'
import { compileInput } from './schema.ts'
import type { Effect, Tool, ToolContext, ToolSchema } from './spec.ts'
import { parseArguments, problemsOf } from './tool.ts'

/** The class form of a tool, for tools that carry state or come from OpenRath in Python. */
export abstract class FlowToolCall {
  abstract readonly name: string
  readonly description: string = ''
  /** A JSON Schema or any Standard Schema of the arguments. */
  abstract readonly parameters: ToolSchema
  /** `external` by default. */
  declare readonly effect?: Effect
  /** Milliseconds until a call is cancelled and reported as timed out; none by default. */
  declare readonly timeout?: number
  declare readonly approval?: NonNullable<Tool['approval']>

  /** What calls must not overlap on. */
  resource?(args: Json): string | readonly string[] | undefined

  /** `session` is as it was when the model asked; `context` has the signal, the call's id and `progress`. */
  abstract call(session: Session, args: unknown, context: ToolContext): unknown
}

/** Any form of tool in the form that the runtime uses. */
export function toTool(given: FlowToolCall | Tool): Tool {
  if (!(given instanceof FlowToolCall)) return given
  const { name, description, effect = 'external', timeout, approval } = given
  const run = (args: unknown, context: ToolContext) => given.call(context.session, args, context)
  refuse(
    'invalid-argument',
    `The tool of class ${given.constructor.name} cannot be used`,
    problemsOf({ name, description, effect, run, ...(timeout !== undefined && { timeout }) }),
  )
  const schema = compileInput(given.parameters, name)
  return Object.freeze<Tool>({
    name,
    description,
    parameters: schema.jsonSchema as NonNullable<typeof schema.jsonSchema>,
    effect,
    ...(timeout !== undefined && { timeout }),
    ...(approval !== undefined && { approval }),
    ...(given.resource && { resource: args => given.resource?.(args) }),
    parse: args => parseArguments(schema, args, name),
    run,
  })
}
