import { show } from '../base/errors.ts'
import { isJson, isPlainObject, type Json } from '../base/json.ts'
import type { ToolOutcome } from '../session/chunk.ts'
import { type ToolCallPart, unnamed } from '../session/part.ts'
import { failed, thrownOutcome } from './outcome.ts'
import { type Claim, claimOf } from './schedule.ts'
import type { Tool } from './spec.ts'

/** A call whose tool is known and whose arguments fit it. */
export interface PreparedCall {
  /** Place in the turn. */
  readonly index: number
  readonly call: ToolCallPart
  readonly tool: Tool
  /** The arguments as they will run: as the model wrote them, or as an approver edited them. */
  readonly args: Json
  /** The same as the tool's schema made them. */
  readonly parsed: unknown
  readonly claim: Claim
}

/** A call that has its outcome without running. */
export interface NotCallable {
  readonly outcome: ToolOutcome
}

/** Finds the tool and checks the arguments. What cannot be called has its outcome already. */
export async function prepare(
  call: ToolCallPart,
  index: number,
  tools: ReadonlyMap<string, Tool>,
): Promise<PreparedCall | NotCallable> {
  const tool = tools.get(call.name)
  if (tool === undefined) return { outcome: unknownTool(call.name, tools) }
  // Some providers send nothing at all for a tool without arguments.
  const args = typeof call.args === 'string' && call.args.trim() === '' ? {} : call.args
  if (!isPlainObject(args)) return { outcome: notAnObject(tool, args) }
  try {
    const parsed = await tool.parse(args)
    return { index, call, tool, args, parsed, claim: claimOf(tool, args) }
  } catch (error) {
    return { outcome: thrownOutcome(error) }
  }
}

function unknownTool(name: string, tools: ReadonlyMap<string, Tool>): ToolOutcome {
  const near = nearest(name, tools.keys())
  const known = near.length > 0 ? near : [...tools.keys()].slice(0, 20)
  const hint =
    known.length === 0
      ? 'There are no tools here.'
      : `${near.length > 0 ? 'Did you mean' : 'There are'} ${known.join(', ')}${near.length > 0 ? '?' : '.'}`
  const what = name === unnamed ? 'The call has no name.' : `There is no tool ${show(name)}.`
  return failed('unknown-tool', `${what} ${hint}`, { nearest: near })
}

function notAnObject(tool: Tool, args: Json): ToolOutcome {
  if (typeof args !== 'string') {
    const message = `The arguments of ${tool.name} must be a JSON object, not ${show(args)}.`
    return failed('invalid-arguments', message, {
      problems: [{ path: 'arguments', message: 'is not an object' }],
    })
  }
  const problem = jsonProblem(args)
  const message = `The arguments of ${tool.name} are not a JSON object (${problem}); call again with valid JSON. They were: ${args.slice(0, 2000)}`
  return failed('invalid-arguments', message, { problems: [{ path: 'arguments', message: problem }] })
}

function jsonProblem(text: string): string {
  try {
    return isJson(JSON.parse(text))
      ? 'it is a string that holds JSON'
      : 'a number in it is too large, or it is nested too deeply'
  } catch (error) {
    return error instanceof Error ? error.message : 'it cannot be parsed'
  }
}

/** The known names that a mistaken one probably meant, best first. */
function nearest(name: string, known: Iterable<string>, count = 3): string[] {
  const wanted = plain(name)
  const near: { name: string; distance: number }[] = []
  for (const candidate of known) {
    const other = plain(candidate)
    const isPart = wanted.length > 2 && (other.includes(wanted) || wanted.includes(other))
    const distance = isPart ? 1 : distanceBetween(wanted, other)
    if (distance <= Math.max(2, Math.ceil(other.length / 3))) near.push({ name: candidate, distance })
  }
  near.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  return near.slice(0, count).map(candidate => candidate.name)
}

/** Models mix up case and separators more often than letters. */
function plain(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .slice(0, 64)
}

/** Levenshtein's distance. */
function distanceBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[to.length] as number
}
