import type { Argument, Cut, Dossier, FileStep, Step, ToolStep } from './dossier.ts'
import { count, counted, moment, money, span } from './figures.ts'
import { visible, visibleLine } from './visible.ts'

/** A dossier as Markdown, for reviews and pull requests. Recorded text stands in fences and code spans, where it is only text. Linear in the dossier. */
export function dossierMarkdown(dossier: Dossier): string {
  const { subject, task, answer, environment, integrity, effects = [] } = dossier
  const facts = [
    subject.status ?? 'session',
    `${moment(subject.startedAt)} UTC`,
    span(subject.endedAt - subject.startedAt),
    counted(dossier.steps.length, 'step'),
    `${count(dossier.spending.total.totalTokens)} tokens`,
    money(dossier.spending.total),
  ]
  return [
    `# ${plain(subject.title)}`,
    `Dossier of ${subject.kind} ${code(subject.id)}. ${facts.join(' · ')}`,
    '## Task',
    ...task.map(cut => block(cut)),
    '## Answer',
    answer ? block(answer) : '*Nothing was answered.*',
    '## Final patch',
    ...patch(dossier),
    '## Branches',
    table(
      ['Branch', 'Status', 'Why', 'Steps', 'Tokens', 'Cost'],
      dossier.branches.map(({ name, status, reason, steps, usage }) => [
        code(name),
        status,
        plain(reason),
        count(steps),
        count(usage.totalTokens),
        money(usage),
      ]),
    ),
    '## Sessions',
    table(
      ['Session', 'Operation', 'From', 'Branch', 'By', 'Steps'],
      dossier.sessions.map(({ id, operation, parents, branch, by, steps }) => [
        code(id),
        plain(operation),
        parents.map(code).join(' '),
        code(dossier.branches[branch]?.name ?? ''),
        by === undefined ? '' : code(by),
        count(steps),
      ]),
    ),
    '## Approvals',
    dossier.approvals.length === 0
      ? '*Nobody was asked.*'
      : list(
          dossier.approvals.map(
            ({ tool, verdict, decidedBy, reason, decidedAt, question }) =>
              `**${verdict}** ${code(tool ?? 'question')}${decidedBy === undefined ? '' : ` by ${plain(decidedBy)}`}${decidedAt === undefined ? '' : `, ${moment(decidedAt)} UTC`}${reason === undefined ? '' : `: ${plain(reason)}`}${question === undefined ? '' : ` (${plain(question)})`}`,
          ),
        ),
    '## Effects of the program',
    effects.length === 0
      ? '*The program did nothing of its own through `effect`.*'
      : list(
          effects.map(
            ({ step, name, effect, by, outcome, result }) =>
              `step ${step}: ${code(name)}${effect === undefined ? '' : ` (${plain(effect)})`}${by === undefined ? '' : ` by ${code(by)}`}, ${outcome === 'error' ? 'failed' : 'gave'} ${code(result.text)}`,
          ),
        ),
    '## Failures and retries',
    dossier.failures.length === 0
      ? '*Nothing failed.*'
      : list(
          dossier.failures.map(
            ({ step, error, message, attempt }) =>
              `${step === undefined ? 'before a resume' : `step ${step}`}: ${code(error)}${attempt === undefined ? '' : `, attempt ${attempt}`}: ${plain(message)}`,
          ),
        ),
    '## Tools',
    table(
      ['Tool', 'Effect', 'Calls', 'Errors', 'Denied', 'Exit ≠ 0', 'Time'],
      dossier.tools.map(({ name, effect, calls, errors, denied, nonZero, durationMs }) => [
        code(name),
        plain(effect ?? '–'),
        ...[calls, errors, denied, nonZero].map(count),
        span(durationMs),
      ]),
    ),
    '## Files',
    table(
      ['Path', 'Changes', 'By', 'Sandbox'],
      dossier.files.map(({ path, changes, agents, sandboxes }) => [
        code(path),
        changes
          .slice(0, 12)
          .map(({ step, change }) => `${change} (${step})`)
          .join(', '),
        agents.map(code).join(' '),
        sandboxes.map(code).join(' '),
      ]),
    ),
    '## Memory',
    ...memory(dossier),
    '## Tokens and cost',
    table(
      ['', 'Answers', 'Input', 'Cached', 'Output', 'Reasoning', 'Cost'],
      [...dossier.spending.agents, ...dossier.spending.models].map(({ name, answers, usage }) => [
        code(name),
        ...[
          answers,
          usage.inputTokens,
          usage.cachedInputTokens,
          usage.outputTokens,
          usage.reasoningTokens,
        ].map(count),
        money(usage),
      ]),
    ),
    '## Instructions',
    ...dossier.prompts.flatMap(({ digest, agents, text }) => [
      `${agents.map(code).join(', ')}, prompt ${code(digest)}`,
      text ? block(text) : '*The store does not have the text.*',
    ]),
    '## What this proves',
    list(dossier.statements.filter(({ proven }) => proven).map(({ text }) => plain(text))),
    '## What it does not prove',
    list(dossier.statements.filter(({ proven }) => !proven).map(({ text }) => plain(text))),
    '### Heads',
    list(integrity.heads.map(({ head, session }) => `${code(head)} of session ${code(session)}`)),
    '## Record',
    ...dossier.steps.flatMap(step => stepParts(step, dossier)),
    '## Environment',
    list([
      ...Object.entries(environment).map(([name, value]) => `${plain(name)}: ${code(value)}`),
      `made: ${moment(dossier.madeAt)} UTC`,
      `format: ${code(`${dossier.format} ${dossier.version}`)}`,
    ]),
  ]
    .filter(part => part !== '')
    .join('\n\n')
    .concat('\n')
}

function patch({ patch: { files, source, note } }: Dossier): string[] {
  if (files.length === 0) return ['*No file was changed on the way to the result.*']
  const origin = source === 'trees' ? [] : [`The recorded changes one after the other. ${note ?? ''}`.trim()]
  return [...origin, ...files.flatMap(fileParts)]
}

function fileParts({ path, change, from, patch }: FileStep): string[] {
  const name = `${from === undefined ? '' : `${code(from)} → `}${code(path)} ${change}`
  return patch ? [name, block(patch, 'diff')] : [name]
}

function memory({ memory: operations }: Dossier): string[] {
  if (operations.length === 0) return ['*No memory was read or written.*']
  return operations.flatMap(({ step, op, store, query, hits, injected, entries, error }) => [
    `step ${step}: **${op}** ${code(store)}${query === undefined ? '' : `, asked ${code(query)}`}${error === undefined ? '' : `, failed: ${plain(error)}`}${entries.length === 0 ? '' : `, entries ${entries.slice(0, 8).map(code).join(' ')}`}`,
    list(hits.map(hit => `${hit.score.toFixed(2)} ${plain(hit.text.text)}`)),
    ...(injected ? [block(injected)] : []),
  ])
}

function stepParts(step: Step, { branches }: Dossier): string[] {
  const { n, kind, by, at, text, reasoning, calls, tool, facts, model } = step
  const meta = [by, branches[step.branch]?.name, model].filter(part => part !== undefined).map(code)
  return [
    `### ${n}. ${tool ? code(tool.name) : kind}`,
    [...meta, moment(at)].join(' · '),
    ...(reasoning ? ['*reasoning*', block(reasoning)] : []),
    ...(text ? [block(text)] : []),
    ...(calls ?? []).map(
      ({ name, step: to, args }) =>
        `asks for ${code(name)}${to === undefined ? ', no result' : `, step ${to}`}${args ? `\n\n${argumentParts(args).join('\n\n')}` : ''}`,
    ),
    ...(tool ? toolParts(tool) : []),
    ...(facts ? [list(facts.map(({ name, value }) => `${plain(name)}: ${code(value)}`))] : []),
  ]
}

function toolParts(tool: ToolStep): string[] {
  const { exitCode, signal, outcome, error, ranOn, durationMs } = tool
  const ended =
    exitCode === undefined
      ? error === undefined
        ? outcome
        : code(error)
      : exitCode === null
        ? `killed ${code(signal ?? '')}`
        : `exit ${exitCode}`
  const how = [
    ended,
    ...(ranOn === undefined ? [] : [`on ${code(ranOn)}`]),
    ...(durationMs === undefined ? [] : [span(durationMs)]),
  ]
  const named = (name: string, cut: Cut | undefined) => (cut && cut.text !== '' ? [name, block(cut)] : [])
  return [
    how.join(' · '),
    ...argumentParts(tool.args),
    ...named('result', tool.result),
    ...named('stdout', tool.stdout),
    ...named('stderr', tool.stderr),
    ...(tool.files ?? []).flatMap(fileParts),
    ...(tool.sessions ? [`sessions made inside: ${tool.sessions.map(code).join(', ')}`] : []),
    ...(tool.drift
      ? [`changed before by nobody of this work: ${tool.drift.slice(0, 20).map(code).join(', ')}`]
      : []),
  ]
}

function argumentParts(args: readonly Argument[]): string[] {
  return args.flatMap(({ name, value }) => [code(name || 'arguments'), block(value)])
}

/** A fence longer than any in the text. */
function block({ text, characters, digest }: Cut, language = 'text'): string {
  const shown = visible(text)
  const longest = (shown.match(/`+/g) ?? []).reduce((most, ticks) => Math.max(most, ticks.length), 2)
  const fence = '`'.repeat(longest + 1)
  const note =
    characters === undefined
      ? ''
      : `\n\nThe first ${count(text.length)} of ${count(characters)} characters; sha256 ${code(digest ?? '')}`
  return `${fence}${language}\n${shown.replace(/\n$/, '')}\n${fence}${note}`
}

function code(text: string): string {
  const shown = visibleLine(text).replaceAll('|', '¦').replaceAll('`', 'ˋ')
  return shown.trim() === '' ? '' : `\`${shown}\``
}

/** One line in which nothing is markup, nor made a link. */
function plain(text: string): string {
  return visibleLine(text).replace(/[\\`*_{}[\]<>()#+!|~&@]|:(?=\/\/)|\.(?<=www\.)/gi, '\\$&')
}

function list(items: readonly string[]): string {
  return items.map(item => `- ${item}`).join('\n')
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '*None.*'
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}
