import type { Digest } from '../../base/digest.ts'
import { addUsage, noUsage, type Usage } from '../../session/usage.ts'
import type { Cutter } from './cutter.ts'
import type { PromptReport, Spending, Spent } from './dossier.ts'
import type { Event, History } from './history.ts'

/** Tokens and cost, by agent and by model, each chunk counted once, on whichever branch it was spent. */
export function spendingOf({ events, byChunk }: History): Spending {
  const agents = new Map<string, Spent>()
  const models = new Map<string, Spent>()
  let total = noUsage
  let unpriced = 0
  const add = (agent: string, model: string, usage: Usage) => {
    total = addUsage(total, usage)
    if (usage.cost === undefined && usage.totalTokens > 0) unpriced++
    count(agents, agent, usage)
    count(models, model, usage)
  }
  for (const { chunk } of events) {
    if (chunk.kind === 'merge') {
      for (const { chunk: id, usage } of chunk.leftOut ?? [])
        if (!byChunk.has(id)) add(leftOut, leftOut, usage)
    } else if ('usage' in chunk && chunk.usage) {
      add(chunk.by ?? nobody, ('model' in chunk && chunk.model) || `(${chunk.kind})`, chunk.usage)
    }
  }
  return { total, agents: byCost(agents), models: byCost(models), unpriced }
}

export const nobody = '(not named)'
const leftOut = '(left out of a merge, session not at hand)'

function count(sums: Map<string, Spent>, name: string, usage: Usage): void {
  const { answers, usage: before } = sums.get(name) ?? { answers: 0, usage: noUsage }
  sums.set(name, { name, answers: answers + 1, usage: addUsage(before, usage) })
}

function byCost(sums: ReadonlyMap<string, Spent>): Spent[] {
  return [...sums.values()].sort(
    ({ usage: a }, { usage: b }) => (b.cost ?? 0) - (a.cost ?? 0) || b.totalTokens - a.totalTokens,
  )
}

/** The instructions behind the answers. */
export function promptsIn(
  events: readonly Event[],
  texts: ReadonlyMap<Digest, string> | undefined,
  cutter: Cutter,
): PromptReport[] {
  const found = new Map<Digest, { agents: Set<string>; answers: number }>()
  for (const { chunk } of events) {
    if (chunk.kind !== 'assistant' || chunk.prompt === undefined) continue
    const known = found.get(chunk.prompt) ?? { agents: new Set(), answers: 0 }
    known.agents.add(chunk.by ?? nobody)
    known.answers++
    found.set(chunk.prompt, known)
  }
  return [...found].map(([digest, { agents, answers }]) => {
    const text = texts?.get(digest)
    return { digest, agents: [...agents], answers, ...(text !== undefined && { text: cutter.keep(text) }) }
  })
}
