import { digestOf } from '../base/digest.ts'
import { readToolResult } from '../tool/big-output.ts'
import type { Tool } from '../tool/spec.ts'
import type { Tools } from './ask.ts'

/** A long result is shown to the model head and tail; with this tool it reads the rest. */
export function withReader(tools: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
  return tools.size === 0 || tools.has(readToolResult.name)
    ? tools
    : new Map([...tools, [readToolResult.name, readToolResult]])
}

const described = new WeakMap<ReadonlyMap<string, Tool>, Tools>()

/** What the model is told of the tools; made once for each table of an agent. */
export function describe(own: ReadonlyMap<string, Tool>, all: ReadonlyMap<string, Tool>): Tools | undefined {
  if (all.size === 0) return undefined
  let known = described.get(own)
  if (known === undefined) {
    const descriptions = [...all.values()].map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
    known = { digest: digestOf(descriptions), descriptions }
    described.set(own, known)
  }
  return known
}
