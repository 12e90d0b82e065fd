import type { StandardSchemaV1 } from '@standard-schema/spec'
import { RathError, show } from '../base/errors.ts'
import { type Json, type JsonObject, type Problem, refuse } from '../base/json.ts'
import { longestTimer } from '../base/time.ts'
import { toValue } from './outcome.ts'
import { type CompiledSchema, compileInput, compileOutput } from './schema.ts'
import type { Effect, Tool, ToolContext, ToolSchema } from './spec.ts'
import { ArgumentError, resultError } from './tool-error.ts'

/** What a tool takes: any Standard Schema (zod, valibot, arktype …) of an object, or a JSON Schema. */
export type ToolInput = StandardSchemaV1<unknown, object> | JsonObject

/** What `run` is handed: what the schema makes of the arguments. A JSON Schema has no type of its own, so there the definition's `Args` count. */
type ArgsOf<Input, Args> = Input extends StandardSchemaV1<unknown, infer Parsed> ? Parsed : Args

/** The arguments as the model wrote them, before the schema looked at them. */
type WrittenOf<Input, Args> = Input extends StandardSchemaV1<infer Written, unknown> ? Written : Args

export interface ToolDefinition<Args extends object, Input extends ToolInput, Result> {
  /** What the model calls it by: 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string
  readonly description: string
  /** Any Standard Schema (zod, valibot, arktype …) or a JSON Schema, of an object. */
  readonly input: Input
  /** Checked after the call; a result that does not fit is an error that the model reads. */
  readonly output?: StandardSchemaV1<Result, unknown> | JsonObject
  /** The JSON Schema that the model is shown, where `input` cannot write its own. */
  readonly parameters?: JsonObject
  /** What it does to the world; `external` by default, which is the one that is never repeated unasked. */
  readonly effect?: Effect
  /** Whatever it does, it does through its sandbox: where that lets nothing out, an `external` effect is a `workspace` one. */
  readonly sandboxed?: boolean
  /** What calls must not overlap on: names, or a function of the arguments as the model wrote them. */
  readonly resource?:
    | string
    | readonly string[]
    | ((args: WrittenOf<Input, Args>) => string | readonly string[] | undefined)
  /** Ask a person before running: always, or when this says so. */
  readonly approval?:
    | boolean
    | ((args: WrittenOf<Input, Args>, context: ToolContext) => boolean | Promise<boolean>)
  /** Milliseconds until a call is cancelled and reported as timed out; none by default. */
  readonly timeout?: number
  run(args: ArgsOf<Input, Args>, context: ToolContext): NoInfer<Result> | Promise<NoInfer<Result>>
}

/** A tool from a plain description and a function. The arguments of `run` have the type of `input`. */
export function tool<
  Args extends object = JsonObject,
  Input extends ToolInput = JsonObject,
  Result = unknown,
>(definition: ToolDefinition<Args, Input, Result>): Tool
export function tool(definition: AnyDefinition): Tool {
  const {
    name,
    description,
    input,
    output,
    effect = 'external',
    timeout,
    approval,
    resource,
    sandboxed,
  } = definition
  refuse('invalid-argument', `The tool ${show(name)} cannot be made`, problemsOf(definition))
  const arguments_ = compileInput(input, name, definition.parameters)
  const result = output && compileOutput(output, name)
  const run = definition.run.bind(definition) as Tool['run']
  return Object.freeze<Tool>({
    name,
    description,
    parameters: arguments_.jsonSchema as JsonObject,
    effect,
    ...(sandboxed === true && { sandboxed }),
    ...(timeout !== undefined && Number.isFinite(timeout) && { timeout }),
    ...(approval !== undefined && { approval: approval as NonNullable<Tool['approval']> }),
    ...(resource !== undefined && { resource: resourceOf(resource) }),
    parse: args => parseArguments(arguments_, args, name),
    run: result ? async (args, context) => checkResult(result, await run(args, context), name) : run,
  })
}

/** A definition of any schema; its types are promises to the caller, and the schemas keep them. */
type AnyDefinition = Omit<ToolDefinition<never, never, never>, 'input' | 'output' | 'run'> & {
  readonly input: ToolSchema
  readonly output?: ToolSchema
  run(args: never, context: ToolContext): unknown
}

/** Checks arguments that a model wrote. Throws `ArgumentError` with every problem. */
export async function parseArguments(schema: CompiledSchema, args: Json, tool: string): Promise<unknown> {
  const checking = schema.check(args, 'arguments')
  const checked = checking instanceof Promise ? await checking : checking
  if (checked.problems) throw new ArgumentError(tool, checked.problems)
  return checked.value
}

async function checkResult(schema: CompiledSchema, result: unknown, tool: string): Promise<unknown> {
  const { value, content } = toValue(result, tool)
  const { problems, ...checked } = await schema.check(value, 'result')
  if (problems) throw resultError(tool, 'its result does not fit its output schema', problems)
  const fitted = (checked as { value: unknown }).value
  return content === undefined ? fitted : { content, value: fitted }
}

function resourceOf(resource: NonNullable<AnyDefinition['resource']>): NonNullable<Tool['resource']> {
  return typeof resource === 'function' ? (resource as NonNullable<Tool['resource']>) : () => resource
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/
export const effects: readonly unknown[] = [
  'pure',
  'read',
  'workspace',
  'idempotent',
  'external',
] satisfies Effect[]

/** What is wrong with the outside of a tool, whoever made it. */
export function problemsOf(tool: { readonly [K in keyof Tool]?: unknown }): Problem[] {
  const problems: Problem[] = []
  const need = (fine: boolean, path: string, message: string) => {
    if (!fine) problems.push({ path, message })
  }
  const { name, description, effect, timeout, run } = tool
  need(
    typeof name === 'string' && namePattern.test(name),
    'name',
    `must be 1 to 64 letters, digits, _ or -, not ${show(name)}`,
  )
  need(typeof description === 'string', 'description', `must be a string, not ${show(description)}`)
  need(
    effect === undefined || effects.includes(effect),
    'effect',
    `must be one of ${effects.join(', ')}, not ${show(effect)}`,
  )
  need(
    timeout === undefined ||
      timeout === Infinity ||
      (typeof timeout === 'number' && timeout > 0 && timeout <= longestTimer),
    'timeout',
    `must be milliseconds between 0 and ${longestTimer}, not ${show(timeout)}`,
  )
  need(typeof run === 'function', 'run', `must be a function, not ${show(run)}`)
  return problems
}

/** Tools by name, for one agent. Two tools with one name are refused: the model could not tell them apart. */
export function toolTable(tools: Iterable<Tool>): ReadonlyMap<string, Tool> {
  const table = new Map<string, Tool>()
  for (const tool of tools) {
    if (table.has(tool.name)) {
      throw new RathError(
        'invalid-argument',
        `Two tools are called ${show(tool.name)}; rename one, or give the tools of an MCP server a prefix.`,
      )
    }
    table.set(tool.name, tool)
  }
  return table
}
