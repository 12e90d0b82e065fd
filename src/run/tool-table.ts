import type { Store } from '../store/spec.ts'
import { readToolResult } from '../tool/big-output.ts'
import type { Tool } from '../tool/spec.ts'
import type { Tools } from './ask.ts'
import { cleanDigest } from './entry.ts'

/** A long result is shown to the model head and tail; with this tool it reads the rest. */
export function withReader(tools: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
  return tools.size === 0 || tools.has(readToolResult.name)
    ? tools
    : new Map([...tools, [readToolResult.name, readToolResult]])
}

const described = new WeakMap<ReadonlyMap<string, Tool>, Tools['descriptions']>()

/** What the model is told of the tools; made once for each table of an agent. */
export function describe(
  own: ReadonlyMap<string, Tool>,
  all: ReadonlyMap<string, Tool>,
  store: Store,
): Tools | undefined {
  if (all.size === 0) return undefined
  let descriptions = described.get(own)
  if (descriptions === undefined) {
    descriptions = [...all.values()].map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
    described.set(own, descriptions)
  }
  return { digest: cleanDigest(descriptions, store), descriptions }
}
