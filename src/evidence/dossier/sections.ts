import type { Json } from '../../base/json.ts'
import { askedIn, nextKey, outcomeIn } from '../../run/entry.ts'
import { changesOf, type Event } from '../../run/graph/history.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { JournalEntry } from '../../store/spec.ts'
import type { Cutter } from './cutter.ts'
import type {
  ApprovalReport,
  EffectReport,
  FailureReport,
  FileSummary,
  MemoryReport,
  ToolSummary,
} from './dossier.ts'
import { argumentsOf, exitOf, placeOf } from './tool-step.ts'

/** The tools that were called, the busiest first. */
export function toolsOf(events: readonly Event[], journal: readonly JournalEntry[] = []): ToolSummary[] {
  const effects = effectsIn(journal)
  const found = new Map<
    string,
    { -readonly [K in keyof ToolSummary]: ToolSummary[K] } & { steps: number[] }
  >()
  for (const { n, chunk } of events) {
    if (chunk.kind !== 'tool-result') continue
    const { tool: name, outcome, durationMs = 0 } = chunk
    const effect = effects.get(name)
    const sum = found.get(name) ?? {
      name,
      ...(effect !== undefined && { effect }),
      calls: 0,
      errors: 0,
      denied: 0,
      nonZero: 0,
      durationMs: 0,
      steps: [],
    }
    sum.calls++
    if (outcome.kind === 'error') sum.errors++
    if (outcome.kind === 'denied') sum.denied++
    if ((exitOf(chunk) ?? 0) !== 0 || exitOf(chunk) === null) sum.nonZero++
    sum.durationMs += durationMs
    sum.steps.push(n)
    found.set(name, sum)
  }
  return [...found.values()].sort((a, b) => b.calls - a.calls)
}

/** What each tool declared to do, as the run's journal keeps it. */
function effectsIn(journal: readonly JournalEntry[]): Map<string, string> {
  const effects = new Map<string, string>()
  for (const entry of journal) {
    if (entry.kind !== 'tool') continue
    const { request, rule } = askedIn(entry)
    const { tool } = (request ?? {}) as { tool?: unknown }
    if (typeof tool === 'string') effects.set(tool, rule)
  }
  return effects
}

/** Every path that a tool changed, and in which sandbox. */
export function filesIn(events: readonly Event[]): FileSummary[] {
  interface Found {
    changes: FileSummary['changes'][number][]
    agents: Set<string>
    sandboxes: Set<string>
    inFinal: boolean
  }
  const found = new Map<string, Found>()
  for (const { event, file } of changesOf(events)) {
    const { path, change } = file
    const { n, chunk, inFinal } = event
    const known = found.get(path) ?? { changes: [], agents: new Set(), sandboxes: new Set(), inFinal: false }
    known.changes.push({ step: n, change })
    if (chunk.by !== undefined) known.agents.add(chunk.by)
    if (chunk.kind === 'tool-result' && chunk.ranOn) known.sandboxes.add(placeOf(chunk.ranOn))
    known.inFinal ||= inFinal
    found.set(path, known)
  }
  return [...found]
    .map(([path, { agents, sandboxes, ...rest }]) => ({
      path,
      ...rest,
      agents: [...agents],
      sandboxes: [...sandboxes],
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** What the program did itself. */
export function effectsOf(events: readonly Event[], cutter: Cutter): EffectReport[] {
  return events.flatMap(({ n, chunk }) => {
    if (chunk.kind !== 'effect') return []
    const { name, by, effect, request, outcome, durationMs } = chunk
    const result = outcome.kind === 'error' ? `${outcome.error}: ${outcome.message}` : jsonText(outcome.value)
    return [
      {
        step: n,
        name,
        ...(by !== undefined && { by }),
        ...(effect !== undefined && { effect }),
        ...(request !== undefined && { request: cutter.keep(jsonText(request)) }),
        outcome: outcome.kind,
        result: cutter.keep(result),
        ...(durationMs !== undefined && { durationMs }),
      },
    ]
  })
}

function jsonText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Questions to people with their answers. One that was asked on two branches is two. */
export function approvalsOf(events: readonly Event[], cutter: Cutter): ApprovalReport[] {
  const found = new Map<string, { asked?: Found; decided?: Found }>()
  type Found = { readonly n: number; readonly chunk: Chunk<'approval'> }
  for (const { n, chunk, line } of events) {
    if (chunk.kind !== 'approval') continue
    const key = `${line.index} ${chunk.approval}`
    const known = found.get(key) ?? {}
    found.set(
      key,
      chunk.verdict === undefined ? { ...known, asked: { n, chunk } } : { ...known, decided: { n, chunk } },
    )
  }
  return [...found.values()].map(({ asked, decided }) => {
    const { chunk } = (decided ?? asked) as Found
    const tool = chunk.tool ?? asked?.chunk.tool
    const question = asked?.chunk.question ?? chunk.question
    return {
      id: chunk.approval,
      ...(tool !== undefined && { tool }),
      ...(question !== undefined && { question }),
      ...(asked && { askedStep: asked.n, askedAt: asked.chunk.at }),
      ...(decided && { decidedStep: decided.n, decidedAt: decided.chunk.at }),
      verdict: decided?.chunk.verdict ?? 'open',
      ...(decided?.chunk.decidedBy !== undefined && { decidedBy: decided.chunk.decidedBy }),
      ...(decided?.chunk.reason !== undefined && { reason: decided.chunk.reason }),
      args: argumentsOf(chunk.args ?? asked?.chunk.args, cutter),
    }
  })
}

export function memoryOf(events: readonly Event[], cutter: Cutter): MemoryReport[] {
  return events.flatMap(({ n, chunk }) => {
    if (chunk.kind !== 'memory') return []
    const { op, store, by, query, hits = [], injected, entries = [], error } = chunk
    return [
      {
        step: n,
        op,
        store,
        ...(by !== undefined && { by }),
        ...(query !== undefined && { query }),
        hits: hits.map(({ id, score, text }) => ({ id, score, text: cutter.keep(text) })),
        ...(injected !== undefined && { injected: cutter.keep(injected) }),
        entries,
        ...(error !== undefined && { error }),
      },
    ]
  })
}

/** Everything that went wrong, retried or not, beginning with what a resumed run has tried again. */
export function failuresOf(events: readonly Event[], journal: readonly JournalEntry[] = []): FailureReport[] {
  const onRecord = events.flatMap(({ n, chunk }) => {
    const failure = failureIn(chunk)
    return failure ? [{ step: n, ...failure, ...(chunk.by !== undefined && { by: chunk.by }) }] : []
  })
  const known = new Set(onRecord.map(({ by, error, message }) => JSON.stringify([by, error, message])))
  const before = triedAgain(journal).filter(
    ({ by, error, message }) => !known.has(JSON.stringify([by, error, message])),
  )
  return [...before, ...onRecord]
}

/** Failures that ended a run and that a resume got past: the sessions that a resumed run makes again do not have them. */
function triedAgain(journal: readonly JournalEntry[]): FailureReport[] {
  const names = new Set(journal.map(({ key, occurrence }) => `${key} ${occurrence}`))
  return journal.flatMap(entry => {
    const { key, occurrence, kind } = entry
    const { error: failure } = outcomeIn(entry) ?? {}
    if (failure === undefined || !names.has(`${nextKey(key)} ${occurrence}`)) return []
    const { code, message } = failure as { readonly code?: unknown; readonly message?: unknown }
    const said = String(message ?? '')
    const what = kind === 'model' || kind === 'memory' ? kind : 'effect'
    return [
      {
        what,
        error: String(code ?? 'failed'),
        message: short(what === 'effect' ? `${kind}: ${said}` : said),
        resumed: true,
        by: askedIn(entry).by,
      },
    ]
  })
}

function failureIn(chunk: Chunk): Omit<FailureReport, 'step' | 'by'> | undefined {
  switch (chunk.kind) {
    case 'error': {
      const { error, message, attempt, retry } = chunk
      return {
        what: 'model',
        error,
        message: short(message),
        ...(attempt !== undefined && { attempt }),
        ...(retry !== undefined && { retry }),
      }
    }
    case 'tool-result': {
      const { tool, outcome } = chunk
      if (outcome.kind === 'error')
        return { what: 'tool', error: outcome.error, message: short(`${tool}: ${outcome.message}`) }
      if (outcome.kind === 'denied')
        return { what: 'denied', error: 'denied', message: short(`${tool}: ${outcome.reason}`) }
      const exit = exitOf(chunk)
      if (exit === undefined || exit === 0) return undefined
      return {
        what: 'command',
        error: exit === null ? 'killed' : `exit ${exit}`,
        message: short(commandIn(chunk)),
      }
    }
    case 'effect':
      return chunk.outcome.kind === 'value'
        ? undefined
        : {
            what: 'effect',
            error: chunk.outcome.error,
            message: short(`${chunk.name}: ${chunk.outcome.message}`),
          }
    case 'memory':
      return chunk.error === undefined
        ? undefined
        : { what: 'memory', error: chunk.op, message: short(chunk.error) }
    default:
      return undefined
  }
}

function commandIn({ tool, args }: Chunk<'tool-result'>): string {
  const { cmd, code } = (args ?? {}) as { cmd?: unknown; code?: unknown }
  return `${tool}: ${String(cmd ?? code ?? '')}`
}

/** The whole of it is at its step. */
function short(text: string): string {
  return text.length > 400 ? `${text.slice(0, 400).toWellFormed()}…` : text
}
