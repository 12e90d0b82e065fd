import type { BranchReport, Dossier, Step, ToolStep } from '../dossier.ts'
import { count, counted, money, span, timeOfDay } from '../figures.ts'
import { type Content, html, type Markup } from './markup.ts'
import { argumentList, fileBlock, openAttribute, stepLink, textBlock } from './parts.ts'

/** Steps in one fold. */
const groupSize = 100
/** A record with no more steps than this is shown unfolded. */
const shortRecord = 60

/** A longer record stays folded on paper: it would be thousands of sheets, and a browser takes minutes to lay them out. */
const mostOnPaper = 1_000

type Fold = 'open' | 'closed' | 'kept'

/** Everything on the record, in folds of steps that belong together. */
export function recordSection(dossier: Dossier): Content {
  const { length } = dossier.steps
  const fold = length <= shortRecord ? 'open' : length <= mostOnPaper ? 'closed' : 'kept'
  const note = html`<p class="note on-paper">On paper only the folds that were open: all ${count(length)} steps are in the file.</p>`
  return [fold === 'kept' && note, ...groupsOf(dossier).map(steps => group(steps, dossier, fold))]
}

function groupsOf({ steps }: Dossier): Step[][] {
  const groups: Step[][] = []
  for (const step of steps) {
    const last = groups.at(-1)
    if (last && last[0]?.session === step.session && last.length < groupSize) last.push(step)
    else groups.push([step])
  }
  return groups
}

function group(steps: readonly Step[], { branches }: Dossier, fold: Fold): Markup {
  const first = steps[0] as Step
  const last = steps.at(-1) as Step
  const branch = branches[first.branch] as BranchReport
  const failed = steps.filter(hasFailed).length
  const who = steps.find(step => step.by !== undefined)?.by
  const numbers = first === last ? `Step ${count(first.n)}` : `Steps ${count(first.n)}–${count(last.n)}`
  return html`<details class="group${fold === 'kept' ? ' kept' : ''}"${fold === 'open' ? openAttribute : ''}><summary><strong>${numbers}</strong> <span class="meta">${branch.name}${who === undefined ? '' : ` · ${who}`} · ${timeOfDay(first.at)}${timeOfDay(first.at) === timeOfDay(last.at) ? '' : `–${timeOfDay(last.at)}`}</span>${failed > 0 ? html` <span class="bad">${counted(failed, 'failure')}</span>` : ''}${branch.status === 'rejected' ? html` <span class="tag">rejected branch</span>` : ''}</summary>
<ol class="record${fold === 'open' ? '' : ' many'}">${steps.map(step => stepItem(step))}</ol></details>
`
}

function hasFailed({ kind, tool }: Step): boolean {
  if (kind === 'error') return true
  if (!tool) return false
  return tool.outcome !== 'value' || (tool.exitCode !== undefined && tool.exitCode !== 0)
}

function stepItem(step: Step): Markup {
  const { n, kind, by, at, tool, text, reasoning, calls, facts, usage, model } = step
  const spent = usage
    ? [`${count(usage.totalTokens)} tokens`, ...(usage.cost === undefined ? [] : [money(usage)])]
    : []
  const meta = [by, model, ...toolMeta(tool), ...spent, timeOfDay(at)].filter(part => part !== undefined)
  return html`<li id="s${n}" class="step${hasFailed(step) ? ' failed' : ''}" data-kind="${kind}" data-by="${by ?? ''}"><p class="line"><a class="n" href="#s${n}">${n}</a> <strong>${tool?.name ?? words[kind]}</strong>${tool ? html` ${outcome(tool)}` : ''} <span class="meta">${meta.join(' · ')}</span></p>${
    reasoning
      ? html`<details class="long"><summary>Reasoning</summary>${textBlock(reasoning, 'reasoning')}</details>`
      : ''
  }${text ? textBlock(text, prose.has(kind) ? 'prose' : '') : ''}${
    calls
      ? html`<p class="calls">asks for ${calls.map(({ name, step: to }, i) => html`${i > 0 ? ', ' : ''}<code>${name}</code>${to === undefined ? html` <span class="bad">no result</span>` : html` ${stepLink(to)}`}`)}</p>${calls.map(({ args }) => args && argumentList(args))}`
      : ''
  }${tool ? toolBody(tool) : ''}${
    facts
      ? html`<dl class="facts">${facts.map(({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
      : ''
  }</li>
`
}

function outcome({ outcome, exitCode, signal, error, timedOut }: ToolStep): Content {
  if (outcome === 'denied') return html`<span class="bad">denied</span>`
  if (outcome === 'error') return html`<span class="bad">${error}</span>`
  if (exitCode === undefined) return html`<span class="good">ok</span>`
  const how = timedOut
    ? 'timed out'
    : exitCode === null
      ? `killed${signal ? ` by ${signal}` : ''}`
      : `exit ${exitCode}`
  return html`<span class="${exitCode === 0 ? 'good' : 'bad'}">${how}</span>`
}

function toolMeta(tool: ToolStep | undefined): string[] {
  if (!tool) return []
  return [
    ...(tool.ranOn === undefined ? [] : [`on ${shortPlace(tool.ranOn)}`]),
    ...(tool.durationMs === undefined ? [] : [span(tool.durationMs)]),
  ]
}

/** The end of a folder's path; the list of files has all of it. */
function shortPlace(place: string): string {
  return place.length > 40 ? place.replace(/\/.*(?=\/[^/]*\/[^/]*$)/, '…') : place
}

function toolBody(tool: ToolStep): Content {
  const { args, result, stdout, stderr, files, drift, truncated, sessions } = tool
  return [
    argumentList(args),
    result && result.text !== ''
      ? output(tool.outcome === 'value' ? 'result' : 'message', textBlock(result, 'code'))
      : '',
    stdout ? output('stdout', textBlock(stdout, 'code')) : '',
    stderr ? output('stderr', textBlock(stderr, 'code')) : '',
    truncated ? html`<p class="cut">There was more output than was kept.</p>` : '',
    files ? files.map(file => fileBlock(file)) : '',
    sessions
      ? html`<p class="meta">made inside: ${sessions.map((id, i) => html`${i > 0 ? ', ' : ''}<code>${id}</code>`)}</p>`
      : '',
    drift
      ? html`<p class="drift">Changed before by nobody of this work: ${drift.slice(0, 20).map((path, i) => html`${i > 0 ? ', ' : ''}<span class="path">${path}</span>`)}</p>`
      : '',
  ]
}

function output(name: string, body: Content): Markup {
  return html`<dl class="args out"><div><dt>${name}</dt><dd>${body}</dd></div></dl>`
}

const prose: ReadonlySet<string> = new Set(['user', 'assistant', 'system', 'compress'])

const words: Readonly<Record<Step['kind'], string>> = {
  system: 'Instructions',
  user: 'User',
  assistant: 'Answer',
  'tool-result': 'Tool',
  effect: 'Effect',
  memory: 'Memory',
  placement: 'Placed',
  route: 'Route',
  approval: 'Approval',
  verdict: 'Verdict',
  merge: 'Merge',
  compress: 'Summary',
  error: 'Failure',
  note: 'Note',
}
