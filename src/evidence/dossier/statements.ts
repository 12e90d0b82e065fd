import { gitSettingsIn } from '../../base/git-settings.ts'
import { askedIn, definition, outcomeIn } from '../../run/entry.ts'
import type { Event } from '../../run/graph/history.ts'
import { type Material, sessionsInside } from '../../run/graph/rows.ts'
import type { SandboxCapabilities } from '../../sandbox/spec.ts'
import type { Chunk } from '../../session/chunk.ts'
import type { JournalEntry } from '../../store/spec.ts'
import type {
  ApprovalReport,
  EffectReport,
  FinalPatch,
  Integrity,
  Spending,
  Statement,
  ToolSummary,
} from './dossier.ts'
import { driftIn } from './tool-step.ts'

export interface StatementFacts {
  readonly material: Material
  readonly events: readonly Event[]
  readonly integrity: Integrity
  readonly tools: readonly ToolSummary[]
  readonly effects: readonly EffectReport[]
  readonly approvals: readonly ApprovalReport[]
  readonly patch: FinalPatch
  readonly spending: Spending
  readonly capabilities: ReadonlyMap<string, SandboxCapabilities>
}

/** What the record proves and what it does not, each from the data at hand. */
export function statementsOf(facts: StatementFacts): Statement[] {
  return [
    ...aboutDigests(facts.integrity),
    ...aboutSignatures(facts.integrity),
    ...aboutAnswers(facts),
    ...aboutFiles(facts),
    ...aboutPlaces(facts),
    ...aboutEffects(facts),
    ...aboutPeople(facts),
    ...aboutGaps(facts),
  ]
}

function proven(about: string, text: string, steps?: readonly number[]): Statement {
  return { about, proven: true, text, ...(steps && { steps }) }
}

function open(about: string, text: string, steps?: readonly number[]): Statement {
  return { about, proven: false, text, ...(steps && { steps }) }
}

function aboutDigests({ ok, checked, problem, heads }: Integrity): Statement[] {
  if (!ok)
    return [
      open(
        'digests',
        `The record was altered or damaged: in session ${problem?.session}, ${problem?.reason}.`,
      ),
    ]
  return [
    proven(
      'digests',
      `All ${many(checked, 'chunk')} have the digest of their content and of everything before them: it was computed anew when this was made. ` +
        `Whoever knows the ${heads.length === 1 ? 'head' : `${heads.length} heads`} can tell whether a byte was changed since.`,
    ),
  ]
}

function aboutSignatures({ signatures }: Integrity): Statement[] {
  const clock = open('clock', 'Times are those of the clocks of the machines that wrote them.')
  if (signatures.length === 0)
    return [
      open(
        'signature',
        'Nobody has signed it. Whoever could write to the store could have written another record, with other heads: compare the heads with a copy from elsewhere.',
      ),
      clock,
    ]
  return [
    ...signatures.map(({ fingerprint, by, valid, trusted }) => {
      const key = `the key ${fingerprint.slice(0, 16)}…${by === undefined ? '' : ` (${by})`}`
      if (!valid) return open('signature', `A signature of ${key} does not fit this record.`)
      const whose = trusted ? '' : ' Whose key that is, is not known here.'
      return proven('signature', `Signed with ${key}: what it covers is as it was then.${whose}`)
    }),
    clock,
  ]
}

function aboutAnswers({ events, spending, material }: StatementFacts): Statement[] {
  const answers = events.filter(({ chunk }) => chunk.kind === 'assistant')
  if (answers.length === 0) return []
  const named = answers.filter(({ chunk }) => chunk.kind === 'assistant' && chunk.prompt !== undefined).length
  const unnamed = answers.length - named
  const inside = lostInside(events, material)
  return [
    spending.unkept || inside.lost.length > 0
      ? open(
          'answers',
          `${many(answers.length, 'answer')} of models ${answers.length === 1 ? 'is' : 'are'} here as recorded. There were more: ${listed(
            [
              ...(inside.lost.length > 0
                ? [`${many(inside.lost.length, 'session')} of sub-agents not at hand`]
                : []),
              ...(spending.unkept
                ? [`${many(spending.unkept.totalTokens, 'token')} that only the journal has`]
                : []),
            ],
          )}.`,
          inside.steps,
        )
      : proven(
          'answers',
          `The ${many(answers.length, 'answer')} of models, those of sub-agents included, and what each was shown before, are here as they were recorded.`,
        ),
    open(
      'answers',
      'Nothing here shows that a model was honest or right, that its reasoning was what led to its answer, or that the provider ran the model it names.',
    ),
    ...(unnamed > 0
      ? [
          open(
            'prompts',
            unnamed === 1
              ? 'One answer does not say under which instructions it was given.'
              : `${many(unnamed, 'answer')} do not say under which instructions they were given.`,
          ),
        ]
      : []),
    ...(spending.unpriced > 0
      ? [
          open(
            'cost',
            `No price is recorded for ${many(spending.unpriced, 'answer')}: the cost is higher than the sum.`,
          ),
        ]
      : []),
  ]
}

/** Sessions that tool results and effects name, and that are not here. */
function lostInside(events: readonly Event[], { sessions }: Material): { lost: string[]; steps: number[] } {
  const known = new Set(sessions.map(({ id }) => id))
  const lost = new Set<string>()
  const steps: number[] = []
  for (const { n, chunk } of events) {
    const missing = sessionsInside(chunk).filter(id => !known.has(id))
    if (missing.length > 0) steps.push(n)
    for (const id of missing) lost.add(id)
  }
  return { lost: [...lost], steps }
}

function aboutFiles({ patch, events }: StatementFacts): Statement[] {
  const drifted = events.filter(({ chunk }) => driftIn(chunk).length > 0)
  const byTree = patch.source === 'trees'
  return [
    ...(byTree
      ? [
          proven(
            'files',
            'The final patch is the difference of two trees of the workspace, each read and checked against its digest.',
          ),
        ]
      : []),
    ...(patch.source === 'recorded'
      ? [
          open(
            'files',
            `The final patch is a list of the single recorded changes; what they add up to was not checked against the files. ${patch.note ?? ''}`.trim(),
          ),
        ]
      : []),
    ...(drifted.length > 0
      ? [
          open(
            'drift',
            `Before ${many(drifted.length, 'call')} files had changed by nobody of this work: a person, another program, or a process that a command left behind.`,
            drifted.map(({ n }) => n),
          ),
        ]
      : []),
    ...aboutGit(
      patch.files.map(({ path }) => path),
      events,
    ),
  ]
}

/** What can run programs outside every sandbox the next time that somebody uses git in the folder. */
function aboutGit(paths: readonly string[], events: StatementFacts['events']): Statement[] {
  const filesOf = (chunk: Chunk) =>
    (chunk.kind === 'tool-result' ? (chunk.files ?? []) : []).map(({ path }) => path)
  const changing = events.filter(({ chunk }) => gitSettingsIn(filesOf(chunk)).length > 0)
  const changed = new Set([
    ...gitSettingsIn(paths),
    ...changing.flatMap(({ chunk }) => gitSettingsIn(filesOf(chunk))),
  ])
  if (changed.size === 0) return []
  const shown = [...changed].sort().slice(0, 10)
  const more = changed.size > shown.length ? ` and ${changed.size - shown.length} more` : ''
  return [
    open(
      'git settings',
      `Settings or hooks of git were changed: ${shown.join(', ')}${more}. They can run programs as you when you next use git there: look at them first.`,
      changing.map(({ n }) => n),
    ),
  ]
}

function aboutPlaces({ events, capabilities }: StatementFacts): Statement[] {
  const calls = new Map<string, number[]>()
  for (const { n, chunk } of events) {
    const backend = chunk.kind === 'tool-result' ? chunk.ranOn?.backend : undefined
    if (typeof backend !== 'string') continue
    const steps = calls.get(backend)
    if (steps) steps.push(n)
    else calls.set(backend, [n])
  }
  return [...calls].map(([backend, steps]) => {
    const ran = `${many(steps.length, 'call')} ran on ${backend}`
    const walls = capabilities.get(backend)
    if (!walls) return open('sandbox', `${ran}. What that keeps a command from is not known here.`)
    const { fileRead, fileWrite, network } = walls.enforced
    const free = [
      ...(fileWrite ? [] : ['write outside the workspace']),
      ...(fileRead ? [] : ['read outside the workspace']),
      ...(network ? [] : ['reach any host']),
    ]
    if (free.length === 0)
      return proven(
        'sandbox',
        `${ran}, which keeps commands inside the workspace and away from hosts that were not allowed.`,
      )
    return open(
      'sandbox',
      `${ran}, which is no wall for everything: a command could ${listed(free)}, and what it did there is not on this record.`,
    )
  })
}

function aboutEffects({ tools, effects: own, material }: StatementFacts): Statement[] {
  const { journal, run } = material
  if (!run || !journal)
    return tools.length === 0
      ? []
      : [
          open(
            'effects',
            'Which tools may act outside is in the journal of a run, and this was made of a session alone.',
          ),
        ]
  const named = Map.groupBy(
    own.filter(({ effect }) => effect === 'external'),
    ({ name }) => name,
  )
  const outside = [
    ...tools.filter(({ effect }) => effect === 'external'),
    ...[...named].map(([name, all]) => ({ name, calls: all.length, steps: all.map(({ step }) => step) })),
  ]
  const effects = journal.filter(({ kind }) => kind !== definition)
  const cut = effects.filter(entry => outcomeIn(entry) === undefined && entry.kind !== 'approval')
  const borrowed = effects.filter(entry => askedIn(entry).reused !== undefined)
  return [
    ...(outside.length > 0
      ? [
          open(
            'effects',
            `${listed(outside.map(({ name, calls }) => `${name} (${many(calls, 'call')})`))} may act outside: the record has what they returned, not what they did.`,
            outside.flatMap(({ steps }) => steps),
          ),
        ]
      : []),
    ...(cut.length > 0
      ? [open('cut-off', `${begun(cut)} begun and have no outcome: whether they happened is not known.`)]
      : []),
    ...(borrowed.length > 0
      ? [
          open(
            'reused',
            `${many(borrowed.length, 'outcome')} came from an earlier run and did not happen again in this one.`,
          ),
        ]
      : []),
  ]
}

function begun(entries: readonly JournalEntry[]): string {
  const kinds = new Map<string, number>()
  for (const { kind } of entries) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  const what = listed([...kinds].map(([kind, count]) => `${count} ${kind}`))
  return `${entries.length === 1 ? 'An effect was' : 'Effects were'} (${what})`
}

function aboutPeople({ approvals }: StatementFacts): Statement[] {
  const decided = approvals.filter(({ verdict }) => verdict !== 'open' && verdict !== 'expired')
  const waiting = approvals.filter(({ verdict }) => verdict === 'open')
  return [
    ...(decided.length > 0
      ? [
          proven(
            'approvals',
            decided.length === 1
              ? 'A decision by a person is on record, with what was shown.'
              : `${many(decided.length, 'decision')} by people are on record, each with what was shown.`,
          ),
          open(
            'approvals',
            'Nothing here shows that a person is who the record names: the name is the one that the program gave.',
          ),
        ]
      : []),
    ...(waiting.length > 0
      ? [open('waiting', `${many(waiting.length, 'question')} nobody has answered yet.`)]
      : []),
  ]
}

function aboutGaps({ material, events, integrity }: StatementFacts): Statement[] {
  const { run, final, more } = material
  const redacted = redactions(events)
  const truncated = stepsWhere(events, value => value.truncated === true)
  const imported = events.some(({ session }) => session.lineage.operation === 'import')
  const pending = final.pending.filter(({ kind }) => kind === 'tool-call').length
  const compressed = events.filter(({ chunk }) => chunk.kind === 'compress').map(({ n }) => n)
  return [
    ...(run && run.status !== 'done'
      ? [
          open(
            'unfinished',
            `The run is ${run.status === 'needs-review' ? 'waiting for a review' : run.status}: this is the record so far.`,
          ),
        ]
      : []),
    ...(pending > 0
      ? [
          open(
            'pending',
            `${many(pending, 'call')} of the last answer ${pending === 1 ? 'has' : 'have'} no result.`,
          ),
        ]
      : []),
    ...(redacted.names.length > 0
      ? [
          open(
            'redacted',
            `Secrets were taken out before writing (${redacted.names.join(', ')}): the digests are those of the text without them.`,
            redacted.steps,
          ),
        ]
      : []),
    ...(truncated.length > 0
      ? [
          open(
            'truncated',
            `The output of ${many(truncated.length, 'command')} was longer than what was kept of it.`,
            truncated,
          ),
        ]
      : []),
    ...(compressed.length > 0
      ? [
          proven(
            'compressed',
            `After ${compressed.length === 1 ? 'a summary' : `${compressed.length} summaries`} models saw that instead of what it stands for, which is still here.`,
            compressed,
          ),
        ]
      : []),
    ...(imported
      ? [open('imported', 'Part of it was imported: what happened before is as the imported file says.')]
      : []),
    ...(integrity.missing.length > 0
      ? [
          open(
            'missing',
            `${many(integrity.missing.length, 'session')} that others came from ${integrity.missing.length === 1 ? 'was' : 'were'} not kept. What those others took over is here.`,
          ),
        ]
      : []),
    ...(more ? [open('more', 'There are more sessions than were looked at.')] : []),
  ]
}

function stepsWhere(events: readonly Event[], test: (value: Record<string, unknown>) => boolean): number[] {
  return events.flatMap(({ n, chunk }) => {
    if (chunk.kind !== 'tool-result' || chunk.outcome.kind !== 'value') return []
    const { value } = chunk.outcome
    return typeof value === 'object' && value !== null && test(value as Record<string, unknown>) ? [n] : []
  })
}

function redactions(events: readonly Event[]): { names: string[]; steps: number[] } {
  const names = new Set<string>()
  const steps: number[] = []
  for (const { n, chunk } of events) {
    const found = [...JSON.stringify(chunk).matchAll(/\[redacted:([^\]"]{1,100})\]/g)]
    if (found.length > 0) steps.push(n)
    for (const [, name = ''] of found) names.add(name)
  }
  return { names: [...names].sort(), steps }
}

function many(count: number, what: string): string {
  return `${count.toLocaleString('en-US')} ${what}${count === 1 ? '' : 's'}`
}

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}
