import { createHash } from 'node:crypto'
import type { Dossier } from '../dossier.ts'
import { count, counted, moment, money, span } from '../figures.ts'
import { graphSection } from './graph.ts'
import { type Content, html, Markup } from './markup.ts'
import { textBlock } from './parts.ts'
import { sealed, sealMarks } from './seal.ts'
import {
  approvalSection,
  branchSection,
  effectSection,
  environmentSection,
  failureSection,
  fileSection,
  memorySection,
  patchSection,
  promptSection,
  proofSection,
  spendingSection,
  toolSection,
} from './sections.ts'
import { recordSection } from './step.ts'
import { script, style } from './style.ts'

/**
 * A dossier as one page of HTML that needs nothing else: no network, no fonts, no files. Whatever was recorded is text on it and nothing more;
 * its policy forbids everything but its own style and script, which it names by digest. Linear in the dossier.
 */
export function dossierHtml(dossier: Dossier): string {
  const parts = partsOf(dossier)
  const { title } = dossier.subject
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="generator" content="openrath/dossier 1">
${sealMarks(dossier)}
<title>${title} – dossier</title>
<style>${new Markup(style)}</style>
</head>
<body>
<a class="skip" href="#record">Skip to the record</a>
<div class="page">
${header(dossier)}
<nav aria-label="Contents"><h2>Contents</h2><ol>${parts.map(({ id, name, size }) => html`<li><a href="#${id}">${name}</a>${size ? html` <span>${count(size)}</span>` : ''}</li>`)}</ol></nav>
<main>
${parts.map(
  ({ id, name, body }) => html`<section id="${id}" aria-labelledby="${id}-h"><h2 id="${id}-h">${name}</h2>
${body}</section>
`,
)}</main>
<footer>Made ${moment(dossier.madeAt)} UTC from the record itself. Times are UTC.</footer>
</div>
<script>${new Markup(script)}</script>
</body>
</html>
`
  return sealed(page.text)
}

interface PagePart {
  readonly id: string
  readonly name: string
  readonly body: Content
  /** How many there are of what it lists. */
  readonly size?: number
}

function partsOf(dossier: Dossier): PagePart[] {
  const {
    task,
    answer,
    patch,
    sessions,
    branches,
    approvals,
    failures,
    tools,
    files,
    memory,
    prompts,
    steps,
  } = dossier
  return [
    {
      id: 'task',
      name: 'Task',
      body: task.length > 0 ? task.map(cut => textBlock(cut, 'prose')) : none('No task is on record.'),
    },
    {
      id: 'answer',
      name: 'Answer',
      body: answer ? textBlock(answer, 'prose') : none('Nothing was answered.'),
    },
    { id: 'patch', name: 'Final patch', body: patchSection(patch), size: patch.files.length },
    { id: 'graph', name: 'Session graph', body: graphSection(dossier), size: sessions.length },
    { id: 'branches', name: 'Branches', body: branchSection(dossier), size: branches.length },
    { id: 'approvals', name: 'Approvals', body: approvalSection(dossier), size: approvals.length },
    {
      id: 'effects',
      name: 'Effects of the program',
      body: effectSection(dossier),
      size: dossier.effects?.length ?? 0,
    },
    { id: 'failures', name: 'Failures and retries', body: failureSection(dossier), size: failures.length },
    { id: 'tools', name: 'Tools', body: toolSection(dossier), size: tools.length },
    { id: 'files', name: 'Files', body: fileSection(dossier), size: files.length },
    { id: 'memory', name: 'Memory', body: memorySection(dossier), size: memory.length },
    { id: 'cost', name: 'Tokens and cost', body: spendingSection(dossier) },
    { id: 'prompts', name: 'Instructions', body: promptSection(dossier), size: prompts.length },
    { id: 'proof', name: 'What this proves', body: proofSection(dossier) },
    {
      id: 'record',
      name: 'Record',
      body: html`${filter(dossier)}${recordSection(dossier)}`,
      size: steps.length,
    },
    { id: 'environment', name: 'Environment', body: environmentSection(dossier) },
  ]
}

function header(dossier: Dossier): Markup {
  const { subject, integrity, spending, tools, files, branches, steps } = dossier
  const calls = tools.reduce((sum, tool) => sum + tool.calls, 0)
  const wrong = dossier.failures.length
  const signed = integrity.signatures.some(({ valid }) => valid)
  const sums: readonly (readonly [string, Content])[] = [
    ['took', span(subject.endedAt - subject.startedAt)],
    ['steps', count(steps.length)],
    ['tokens', count(spending.total.totalTokens)],
    ['cost', money(spending.total)],
    ['branches', count(branches.length)],
    ['tool calls', count(calls)],
    ['files changed', count(files.length)],
    ['failures', wrong === 0 ? '0' : html`<span class="wrong">${count(wrong)}</span>`],
  ]
  return html`<header><p class="eyebrow">Dossier of ${subject.kind} <code>${subject.id}</code>${subject.workflow === undefined ? '' : ` · ${subject.workflow}`}</p>
<h1>${subject.title}</h1>
<p class="state"><span class="${tone(subject.status)}">${state(subject.status)}</span><span>${moment(subject.startedAt)} UTC</span><a href="#proof">${integrity.ok ? `${counted(integrity.checked, 'chunk')} verified, ${signed ? 'signed' : 'unsigned'}` : html`<span class="bad">the record was altered</span>`}</a></p>
<dl class="sums">${sums.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></header>`
}

function state(status: Dossier['subject']['status']): string {
  switch (status) {
    case undefined:
      return 'A session'
    case 'needs-review':
      return 'Needs a review'
    default:
      return `${status[0]?.toUpperCase()}${status.slice(1)}`
  }
}

function tone(status: Dossier['subject']['status']): string {
  if (status === 'failed' || status === 'needs-review' || status === 'cancelled') return 'bad'
  return status === 'done' ? 'good' : ''
}

function filter({ steps }: Dossier): Markup {
  const kinds = [...new Set(steps.map(({ kind }) => kind))]
  const agents = [...new Set(steps.flatMap(({ by }) => (by === undefined ? [] : [by])))].slice(0, 200)
  return html`<div class="filter" role="search" hidden><label>Find <input type="search" name="text" autocomplete="off"></label><label>Kind <select name="kind"><option value="">all</option><option value="failed">failures</option>${kinds.map(kind => html`<option>${kind}</option>`)}</select></label><label>Agent <select name="by"><option value="">all</option>${agents.map(agent => html`<option>${agent}</option>`)}</select></label><button type="button">Open or close all</button><output aria-live="polite"></output></div>`
}

function none(text: string): Markup {
  return html`<p class="none">${text}</p>`
}

function policy(): string {
  const own = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  return `default-src 'none'; style-src ${own(style)}; script-src ${own(script)}; base-uri 'none'; form-action 'none'`
}
