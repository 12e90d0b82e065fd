import type { ApprovalReport, BranchReport, Dossier, FinalPatch, Spent, Statement } from '../dossier.ts'
import { count, counted, moment, money, shortId, span } from '../figures.ts'
import { type Content, html, type Markup } from './markup.ts'
import { argumentList, digestText, fileBlock, stepLink, stepLinks, sums, table, textBlock } from './parts.ts'

/** A patch with no more lines than this is shown unfolded. */
const shortPatch = 160
/** Rows of a list that are shown before the rest is folded. */
const shortList = 40

export function patchSection({ source, from, to, files, note }: FinalPatch): Content {
  if (files.length === 0) return html`<p class="none">No file was changed on the way to the result.</p>`
  let rows = 0
  for (const { patch } of files) rows += patch ? sums(patch.text).added + sums(patch.text).removed : 0
  const origin =
    source === 'trees'
      ? html`Between the trees ${digestText(from as string)} and ${digestText(to as string)} of the workspace.`
      : html`The recorded changes one after the other. ${note}`
  const blocks = files.map(
    file =>
      html`<li>${fileBlock(file, rows <= shortPatch, file.step === undefined ? '' : html` <span class="meta">step ${stepLink(file.step)}</span>`)}</li>`,
  )
  return html`<p class="note">${origin}</p><ol class="patch">${folded(blocks, 'file')}</ol>`
}

export function branchSection({ branches }: Dossier): Content {
  return html`<ol class="branches">${folded(branches.map(branch), 'branch', 'branches')}</ol>`
}

function branch(report: BranchReport): Markup {
  const { name, status, reason, said, steps, stepsInFinal, agents, usage, score, began } = report
  const meta = [
    began,
    counted(steps, 'step'),
    ...(stepsInFinal < steps ? [`${count(stepsInFinal)} in the result`] : []),
    ...(usage.totalTokens > 0 ? [`${count(usage.totalTokens)} tokens`] : []),
    ...(usage.cost === undefined ? [] : [money(usage)]),
    ...(score === undefined ? [] : [`score ${score}`]),
  ]
  return html`<li class="branch"><p><strong>${name}</strong> <span class="status ${status}">${status}</span></p><p>${reason}${said.length > 0 ? html` <span class="meta">step${said.length === 1 ? '' : 's'}${stepLinks(said)}</span>` : ''}</p><p class="meta">${meta.join(' · ')}${agents.length > 0 ? ` · ${agents.slice(0, 6).join(', ')}` : ''}</p></li>
`
}

export function toolSection({ tools }: Dossier): Content {
  if (tools.length === 0) return html`<p class="none">No tool was called.</p>`
  return table(
    'Calls by tool',
    ['Tool', 'Effect', 'Calls', 'Errors', 'Denied', 'Exit ≠ 0', 'Time', 'Steps'],
    tools.map(tool => [
      html`<code>${tool.name}</code>`,
      tool.effect ?? '–',
      count(tool.calls),
      bad(tool.errors),
      bad(tool.denied),
      bad(tool.nonZero),
      span(tool.durationMs),
      stepLinks(tool.steps, 6),
    ]),
  )
}

export function fileSection({ files }: Dossier): Content {
  if (files.length === 0) return html`<p class="none">No tool changed a file.</p>`
  return html`<ol class="plain">${folded(
    files.map(
      ({ path, changes, agents, sandboxes, inFinal }) =>
        html`<li><p><span class="path">${path}</span>${inFinal ? '' : html` <span class="tag">not in the result</span>`}</p><p class="meta">${changes.slice(0, 12).map(({ step, change }, i) => html`${i > 0 ? ', ' : ''}${change} in ${stepLink(step)}`)}${changes.length > 12 ? ` and ${count(changes.length - 12)} more` : ''}${agents.length > 0 ? ` · ${agents.join(', ')}` : ''}${sandboxes.length > 0 ? ` · on ${sandboxes.join(', ')}` : ''}</p></li>`,
    ),
    'file',
  )}</ol>`
}

export function approvalSection({ approvals }: Dossier): Content {
  if (approvals.length === 0) return html`<p class="none">Nobody was asked.</p>`
  return html`<ol class="plain">${folded(approvals.map(approval), 'approval')}</ol>`
}

function approval(report: ApprovalReport): Markup {
  const { tool, question, verdict, decidedBy, reason, askedAt, decidedAt, askedStep, decidedStep } = report
  const steps = [askedStep, decidedStep].filter(step => step !== undefined)
  const tone =
    verdict === 'approved' || verdict === 'edited' || verdict === 'answered'
      ? 'adopted'
      : verdict === 'open'
        ? 'unjudged'
        : 'rejected'
  const who =
    verdict === 'open'
      ? 'Nobody has decided yet'
      : decidedBy === undefined
        ? 'By somebody who gave no name'
        : `By ${decidedBy}`
  return html`<li><p><strong>${tool ?? 'A question'}</strong> <span class="status ${tone}">${verdict}</span></p><p>${question}</p><p>${who}${reason === undefined ? '' : `: ${reason}`}</p>${argumentList(report.args)}<p class="meta">${askedAt === undefined ? '' : `asked ${moment(askedAt)} · `}${decidedAt === undefined ? '' : `decided ${moment(decidedAt)} · `}steps${stepLinks(steps)}</p></li>
`
}

export function effectSection({ effects = [] }: Partial<Dossier>): Content {
  if (effects.length === 0)
    return html`<p class="none">The program did nothing of its own through <code>effect</code>.</p>`
  return html`<ol class="plain">${folded(
    effects.map(
      ({ step, name, by, effect, request, outcome, result, durationMs }) =>
        html`<li><p><strong>${name}</strong>${outcome === 'error' ? html` <span class="bad">failed</span>` : ''}</p>${request ? html`<p>asked: ${textBlock(request, 'code')}</p>` : ''}${textBlock(result, 'code')}<p class="meta">step ${stepLink(step)}${effect === undefined ? '' : ` · ${effect}`}${by === undefined ? '' : ` · ${by}`}${durationMs === undefined ? '' : ` · ${span(durationMs)}`}</p></li>`,
    ),
    'effect',
  )}</ol>`
}

export function failureSection({ failures }: Dossier): Content {
  if (failures.length === 0) return html`<p class="none">Nothing failed.</p>`
  return html`<ol class="plain">${folded(
    failures.map(
      ({ step, what, error, message, attempt, retry, by }) =>
        html`<li><p><span class="bad">${error}</span> ${message}</p><p class="meta">${step === undefined ? 'before a resume' : html`step ${stepLink(step)}`} · ${what}${attempt === undefined ? '' : ` · attempt ${attempt}`}${retry === undefined ? '' : ` · ${retry === 'never' ? 'not to be retried' : 'retry'}`}${by === undefined ? '' : ` · ${by}`}</p></li>`,
    ),
    'failure',
  )}</ol>`
}

export function memorySection({ memory }: Dossier): Content {
  if (memory.length === 0) return html`<p class="none">No memory was read or written.</p>`
  return html`<ol class="plain">${folded(
    memory.map(
      ({ step, op, store, by, query, hits, injected, entries, error }) =>
        html`<li><p><strong>${op}</strong> <span class="meta">${store}${by === undefined ? '' : ` · ${by}`} · step ${stepLink(step)}</span></p>${query === undefined ? '' : html`<p>asked: ${query}</p>`}${error === undefined ? '' : html`<p class="bad">${error}</p>`}${hits.length > 0 ? html`<ul class="hits">${hits.map(hit => html`<li><span class="score">${hit.score.toFixed(2)}</span> ${textBlock(hit.text, 'prose')}</li>`)}</ul>` : ''}${injected ? html`<details class="long"><summary>What the model was shown</summary>${textBlock(injected, 'prose')}</details>` : ''}${entries.length > 0 ? html`<p class="meta">${counted(entries.length, 'entry', 'entries')}: ${entries.slice(0, 8).join(', ')}${entries.length > 8 ? ' …' : ''}</p>` : ''}</li>`,
    ),
    'operation',
  )}</ol>`
}

export function spendingSection({ spending }: Dossier): Content {
  const { total, agents, models, unpriced } = spending
  if (total.totalTokens === 0) return html`<p class="none">Nothing was spent.</p>`
  const all = {
    name: 'Together',
    answers: agents.reduce((sum, agent) => sum + agent.answers, 0),
    usage: total,
  }
  return html`${spentTable('By agent', 'Agent', [...agents, all])}${spentTable('By model', 'Model', models)}${unpriced > 0 ? html`<p class="note">${counted(unpriced, 'answer')} without a price: the cost is higher than the sum.</p>` : ''}`
}

function spentTable(caption: string, head: string, rows: readonly Spent[]): Markup {
  return table(
    caption,
    [head, 'Answers', 'Input', 'Cached', 'Output', 'Reasoning', 'Cost'],
    rows.map(({ name, answers, usage }) => [
      name,
      ...[answers, usage.inputTokens, usage.cachedInputTokens, usage.outputTokens, usage.reasoningTokens].map(
        count,
      ),
      money(usage),
    ]),
  )
}

export function promptSection({ prompts }: Dossier): Content {
  if (prompts.length === 0) return html`<p class="none">No answer names its instructions.</p>`
  return prompts.map(
    ({ digest, agents, answers, text }) =>
      html`<details class="prompt"><summary><strong>${agents.join(', ')}</strong> <span class="meta">${counted(answers, 'answer')} · ${digestText(digest)}</span></summary>${text ? html`<pre class="text prose">${text.text}</pre>` : html`<p class="none">The store does not have the text.</p>`}</details>`,
  )
}

export function proofSection({ statements, integrity }: Dossier): Content {
  const { heads } = integrity
  const part = (name: string, wanted: boolean) =>
    html`<div class="proof"><h3>${name}</h3>${statementList(statements.filter(({ proven }) => proven === wanted))}</div>`
  return html`${part('Proven', true)}${part('Not proven', false)}
<div class="proof"><h3>Heads</h3><ol class="heads">${folded(
    heads.map(
      ({ session, head }, i) =>
        html`<li><code>${head}</code> <span class="meta">session ${shortId(session)}${i === 0 ? ', the result' : ''}</span></li>`,
    ),
    'head',
  )}</ol></div>`
}

function statementList(statements: readonly Statement[]): Content {
  if (statements.length === 0) return html`<p class="none">Nothing.</p>`
  return html`<ul class="statements">${statements.map(({ text, steps }) => html`<li>${text}${steps ? html` <span class="meta">step${steps.length === 1 ? '' : 's'}${stepLinks(steps, 8)}</span>` : ''}</li>`)}</ul>`
}

export function environmentSection({ environment, madeAt, format, version, subject }: Dossier): Content {
  const rows: readonly (readonly [string, string])[] = [
    ...Object.entries(environment),
    ['made', `${moment(madeAt)} UTC`],
    [subject.kind, subject.id],
    ...(subject.kind === 'run' ? [['session', subject.session] as const] : []),
    ['format', `${format} ${version}`],
  ]
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

function bad(value: number): Content {
  return value === 0 ? '0' : html`<span class="bad">${count(value)}</span>`
}

/** A list whose tail is folded. */
function folded(items: readonly Markup[], what: string, several = `${what}s`): Content {
  if (items.length <= shortList) return items
  const rest = items.slice(shortList)
  return [
    ...items.slice(0, shortList),
    html`<li class="rest"><details><summary>${counted(rest.length, `more ${what}`, `more ${several}`)}</summary><ol class="plain">${rest}</ol></details></li>`,
  ]
}
