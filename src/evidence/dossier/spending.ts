import type { Digest } from '../../base/digest.ts'
import { spentIn } from '../../run/entry.ts'
import type { Event, History } from '../../run/graph/history.ts'
import { type Material, sessionsInside } from '../../run/graph/rows.ts'
import { addUsage, noUsage, spentBy, subtractUsage, type Usage } from '../../session/usage.ts'
import type { JournalEntry } from '../../store/spec.ts'
import type { Cutter } from './cutter.ts'
import type { PromptReport, Spending, Spent } from './dossier.ts'

/**
 * Tokens and cost, by agent and by model, each chunk counted once, on whichever branch or inside whichever tool it was spent. What the
 * journal of a run says besides is counted, too: an answer that was there when the process died, a question whose session was dropped.
 */
export function spendingOf(
  { events, byChunk, lineOf }: History,
  { run, journal, sessions }: Material,
): Spending {
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
    } else if (chunk.kind === 'tool-result' || chunk.kind === 'effect') {
      const isHere = sessionsInside(chunk).some(id => lineOf.has(id))
      if (chunk.usage && !isHere) add(inside, inside, chunk.usage)
    } else {
      const usage = spentBy(chunk)
      if (usage) add(chunk.by ?? nobody, ('model' in chunk && chunk.model) || `(${chunk.kind})`, usage)
    }
  }
  const input = sessions.find(({ id }) => id === run?.input)
  const known = subtractUsage(total, input?.usage ?? noUsage)
  const unkept = subtractUsage(spentOn(journal ?? []), known)
  if (unkept.totalTokens > 0) {
    add(dropped, dropped, unkept)
    return { total, agents: byCost(agents), models: byCost(models), unkept, unpriced }
  }
  return { total, agents: byCost(agents), models: byCost(models), unpriced }
}

const nobody = '(not named)'
const inside = '(inside a tool, session not at hand)'
const dropped = '(on the journal, in no session)'
const leftOut = '(left out of a merge, session not at hand)'

/** What the answers on a journal spent, borrowed ones included: their chunks say it, too. */
function spentOn(journal: readonly JournalEntry[]): Usage {
  let spent = noUsage
  for (const entry of journal) {
    const usage = spentIn(entry)
    if (usage) spent = addUsage(spent, usage)
  }
  return spent
}

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
