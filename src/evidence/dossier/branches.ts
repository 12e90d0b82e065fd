import type { Event, History, Line } from '../../run/graph/history.ts'
import type { Material } from '../../run/graph/rows.ts'
import type { Chunk } from '../../session/chunk.ts'
import { addUsage, noUsage, spentBy } from '../../session/usage.ts'
import type { BranchReport, BranchStatus } from './dossier.ts'

/** Every line of work with what became of it: what a verdict says of it, else whether its chunks are part of the result. */
export function branchesOf(history: History, { final }: Material): BranchReport[] {
  const verdicts = verdictsByLine(history)
  const merges = mergesByLine(history)
  const accepted = acceptedIn(history, verdicts)
  return history.lines.map(line => {
    const said = verdicts.get(line) ?? []
    const last = said.at(-1)?.chunk as Chunk<'verdict'> | undefined
    const usage = usageOf(line)
    const isFinal = history.lineOf.get(final.id) === line
    const merged = merges.get(line) ?? []
    const stepsInFinal = line.events.filter(event => event.inFinal).length
    const facts = { line, isFinal, stepsInFinal, verdict: last, merged, accepted }
    const { status, reason, by = [] } = outcomeOf(facts)
    return {
      name: line.name,
      began: line.began.lineage.operation,
      status,
      reason,
      said: [...new Set([...said.map(event => event.n), ...by])],
      steps: line.events.length,
      stepsInFinal,
      agents: [...new Set(line.events.flatMap(({ chunk }) => (chunk.by === undefined ? [] : [chunk.by])))],
      usage,
      ...(last?.score !== undefined && { score: last.score }),
    }
  })
}

interface Facts {
  readonly line: Line
  readonly isFinal: boolean
  readonly stepsInFinal: number
  readonly verdict: Chunk<'verdict'> | undefined
  /** Merges that took it in or left it out. */
  readonly merged: readonly Event[]
  readonly accepted: ReadonlyMap<Event, string>
}

interface Outcome {
  readonly status: BranchStatus
  readonly reason: string
  readonly by?: readonly number[]
}

function outcomeOf({ line, isFinal, stepsInFinal, verdict, merged, accepted }: Facts): Outcome {
  if (verdict) {
    const status = verdict.verdict === 'accept' ? 'adopted' : 'rejected'
    const who = verdict.by === undefined ? '' : ` by ${verdict.by}`
    const still =
      status === 'rejected' && stepsInFinal > 0 ? ' Its steps are still part of the final history.' : ''
    const said = status === 'adopted' ? 'Accepted' : 'Rejected'
    return { status, reason: `${said}${who}${verdict.reason ? `: ${ended(verdict.reason)}` : '.'}${still}` }
  }
  if (isFinal) return { status: 'adopted', reason: 'The result is on this line.' }
  if (line.inside) return workedInside(line.inside)
  const merge = merged.at(-1)
  const by = merge ? [merge.n] : []
  if (stepsInFinal > 0) return { status: 'adopted', reason: takenIn(line, stepsInFinal, merge), by }
  if (line.events.length === 0) return { status: 'unjudged', reason: 'Nothing was done on it.', by }
  if (!merge)
    return { status: 'unjudged', reason: `No verdict names it and nothing took it in.${lastError(line)}` }
  if (!merge.inFinal) {
    return {
      status: 'unjudged',
      reason: `It went into ${merge.line.name}, which is not part of the result.`,
      by,
    }
  }
  const chosen = accepted.get(merge) ?? ''
  return { status: 'rejected', reason: `Left out of ${named(merge)}.${chosen}${lastError(line)}`, by }
}

function workedInside({ n, chunk, inFinal, line }: Event): Outcome {
  const what = chunk.kind === 'tool-result' ? chunk.tool : chunk.kind === 'effect' ? chunk.name : chunk.kind
  if (inFinal) return { status: 'adopted', reason: `It worked inside ${what}, step ${n}.`, by: [n] }
  return {
    status: 'unjudged',
    reason: `It worked inside ${what} on ${line.name}, which is not part of the result.`,
    by: [n],
  }
}

function takenIn({ events, began }: Line, count: number, merge: Event | undefined): string {
  if (!merge) return began.lineage.parents.length === 0 ? 'The work began here.' : 'The result came from it.'
  return count === events.length
    ? `Taken in by ${named(merge)}.`
    : `${count} of its ${events.length} steps were taken in by ${named(merge)}.`
}

function named({ n, chunk }: Event): string {
  const { policy } = chunk as Chunk<'merge'>
  return `the merge in step ${n} (policy ${policy}${chunk.by === undefined ? '' : `, by ${chunk.by}`})`
}

/** For each merge, which of its branches was accepted, as a sentence. */
function acceptedIn(
  { events, lineOf }: History,
  verdicts: ReadonlyMap<Line, readonly Event[]>,
): Map<Event, string> {
  const found = new Map<Event, string>()
  for (const event of events) {
    if (event.chunk.kind !== 'merge') continue
    for (const { session } of event.chunk.branches) {
      const line = lineOf.get(session)
      const verdict = line && (verdicts.get(line)?.at(-1)?.chunk as Chunk<'verdict'> | undefined)
      if (verdict?.verdict !== 'accept') continue
      found.set(event, ` Instead: ${ended(verdict.reason ?? `${line?.name} was accepted`)}`)
    }
  }
  return found
}

function lastError(line: Line): string {
  const event = line.events.findLast(({ chunk }) => chunk.kind === 'error')
  return event ? ` Its last error: ${ended(event.chunk.text.split('\n')[0] as string)}` : ''
}

function ended(sentence: string): string {
  return /[.!?…]$/.test(sentence) ? sentence : `${sentence}.`
}

/** A verdict's subject is a session, a chunk or a branch by name. */
function verdictsByLine({ events, lineOf, byChunk, lines }: History): Map<Line, Event[]> {
  const byName = new Map<string, Line>()
  for (const line of lines) {
    const { label } = line.began.lineage
    for (const name of [line.name, line.began.branch, label]) {
      if (name !== undefined && name !== '' && !byName.has(name)) byName.set(name, line)
    }
  }
  const found = new Map<Line, Event[]>()
  for (const event of events) {
    if (event.chunk.kind !== 'verdict') continue
    const { subject } = event.chunk
    const line = lineOf.get(subject) ?? byChunk.get(subject)?.line ?? byName.get(subject)
    if (line) add(found, line, event)
  }
  return found
}

function mergesByLine({ events, lineOf }: History): Map<Line, Event[]> {
  const found = new Map<Line, Event[]>()
  for (const event of events) {
    if (event.chunk.kind !== 'merge') continue
    const lines = new Set(event.chunk.branches.map(({ session }) => lineOf.get(session)))
    for (const line of lines) if (line && line !== event.line) add(found, line, event)
  }
  return found
}

function add<K>(map: Map<K, Event[]>, key: K, event: Event): void {
  const known = map.get(key)
  if (known) known.push(event)
  else map.set(key, [event])
}

function usageOf({ events }: Line) {
  let usage = noUsage
  for (const { chunk } of events) {
    const spent = spentBy(chunk)
    if (spent) usage = addUsage(usage, spent)
  }
  return usage
}
