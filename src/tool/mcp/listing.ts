import { digestOf } from '../../base/digest.ts'
import { show } from '../../base/errors.ts'
import { isJson, isPlainObject, type Json, type JsonObject } from '../../base/json.ts'
import { compileSchema, schemaProblems, type Validate, withoutPatterns } from '../json-schema.ts'
import { matchesAny } from '../policy/match.ts'
import type { Effect } from '../spec.ts'

/** One tool as a server lists it, with what is untrue in it put right. */
export interface ListedTool {
  /** What the server calls it. */
  readonly remoteName: string
  /** What the model calls it. */
  readonly name: string
  readonly description: string
  /** As the server wrote it, or one that takes anything where that was no schema. */
  readonly parameters: JsonObject
  readonly input: Validate | undefined
  readonly output: Validate | undefined
  readonly annotations: McpAnnotations
}

/** What a server says about its tool. Hints, from a stranger. */
export interface McpAnnotations {
  readonly readOnlyHint?: boolean
  readonly idempotentHint?: boolean
  readonly destructiveHint?: boolean
  readonly openWorldHint?: boolean
}

export interface ListingOptions {
  /** Only tools whose name on the server fits one of these globs. */
  readonly include?: readonly string[]
  /** None of these. */
  readonly exclude?: readonly string[]
  /** Put before every name: `github_`. */
  readonly prefix?: string
}

export interface Listing {
  readonly tools: readonly ListedTool[]
  readonly warnings: readonly string[]
  /** Names that two tools would have; the second of each is left out. */
  readonly clashes: readonly string[]
}

export function readListing(listed: readonly unknown[], options: ListingOptions): Listing {
  const tools = new Map<string, ListedTool>()
  const warnings: string[] = []
  const clashes: string[] = []
  for (const entry of listed) {
    if (!isPlainObject(entry) || typeof entry.name !== 'string' || entry.name === '') {
      warnings.push(`a tool without a name is left out (${show(entry)})`)
      continue
    }
    if (options.include && !matchesAny(options.include, entry.name)) continue
    if (options.exclude && matchesAny(options.exclude, entry.name)) continue
    const tool = readTool(entry.name, entry, options.prefix ?? '', warnings)
    const other = tools.get(tool.name)
    if (other === undefined) tools.set(tool.name, tool)
    else clashes.push(`${show(other.remoteName)} and ${show(entry.name)} are both called ${tool.name}`)
  }
  return { tools: [...tools.values()], warnings: [...warnings, ...clashes], clashes }
}

/** What a tool with these annotations does to the world, if they are true. */
export function effectFrom({ readOnlyHint, idempotentHint }: McpAnnotations): Effect {
  if (readOnlyHint === true) return 'read'
  return idempotentHint === true ? 'idempotent' : 'external'
}

const takesAnything: JsonObject = Object.freeze({ type: 'object', additionalProperties: true })

function readTool(
  remoteName: string,
  entry: Record<string, unknown>,
  prefix: string,
  warnings: string[],
): ListedTool {
  const { description, inputSchema, outputSchema, annotations } = entry
  const input = usable(inputSchema, `${remoteName}: its input schema`, warnings, true)
  const output =
    outputSchema === undefined
      ? undefined
      : usable(outputSchema, `${remoteName}: its output schema`, warnings, false)
  return {
    remoteName,
    name: safeName(prefix + remoteName),
    description: typeof description === 'string' ? description : '',
    parameters: input ?? takesAnything,
    input: input && compileSchema(withoutPatterns(input)),
    output: output && compileSchema(withoutPatterns(output)),
    annotations: isPlainObject(annotations) ? (annotations as McpAnnotations) : {},
  }
}

/** Of a request to a model, around the schema in it: what they leave of the depth that JSON may have is for the schema. */
const levelsAround = 8

function usable(
  schema: unknown,
  what: string,
  warnings: string[],
  mustBeObject: boolean,
): JsonObject | undefined {
  const isShallow = isJson(schema, levelsAround)
  const problems = isShallow
    ? [...schemaProblems(schema)]
    : [{ path: 'schema', message: 'is nested too deeply' }]
  if (mustBeObject && isPlainObject(schema) && schema.type !== 'object') {
    problems.push({ path: 'schema.type', message: `must be "object", not ${show(schema.type)}` })
  }
  if (problems.length === 0) return schema as JsonObject
  const reasons = problems.slice(0, 3).map(({ path, message }) => `${path}: ${message}`)
  warnings.push(`${what} is no schema and is not used (${reasons.join('; ')})`)
  return undefined
}

/** A name that every provider takes. What is cut or replaced is told apart by a digest only where it is too long. */
function safeName(name: string): string {
  const safe = name.replace(/[^a-zA-Z0-9_-]/g, '_')
  return safe.length <= 64 ? safe : `${safe.slice(0, 55)}_${digestOf(name as Json).slice(0, 8)}`
}
