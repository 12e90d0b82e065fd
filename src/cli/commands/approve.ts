import type { Command } from 'commander'
import { type Json, toJson } from '../../base/json.ts'
import { decideApproval, expiredApprovals, openApprovals } from '../../run/approve/decide.ts'
import { openReviews, reviewEffect, type Unfinished } from '../../run/approve/review.ts'
import { usualLease } from '../../run/journal.ts'
import type { OpenApproval } from '../../run/run.ts'
import type { RunRow, Store } from '../../store/spec.ts'
import { whoami } from '../ask.ts'
import { callLines, effectLines, reviewLines } from '../call-print.ts'
import { examples, type JsonOption, jsonOrText, type StoreOption, withJson, withStore } from '../command.ts'
import { exit, UsageError } from '../errors.ts'
import { findRun } from '../names.ts'
import type { Output } from '../output.ts'
import { openToRead } from '../runtime.ts'
import { ago, indent, oneVisibleLine } from '../text.ts'

interface Options extends StoreOption, JsonOption {
  readonly yes?: boolean
  readonly no?: boolean
  readonly edit?: unknown
  readonly answer?: unknown
  readonly happened?: boolean
  readonly didNotHappen?: boolean
  readonly same?: string
  readonly result?: unknown
  readonly reason?: string
  readonly by: string
  readonly resume?: boolean
}

interface Waiting {
  readonly run: RunRow
  readonly approvals: readonly OpenApproval[]
  /** Questions that nobody can answer any more: the run goes on without an answer when it is resumed. */
  readonly expired: readonly OpenApproval[]
  readonly reviews: readonly Unfinished[]
}

export function define(command: Command, output: Output): void {
  command
    .argument('[run]', 'the run that asks; all that wait by default')
    .argument('[question]', 'the beginning of its id, when the run asks several')
    .option('-y, --yes', 'let the call run')
    .option('--no', 'refuse it')
    .option('--edit <json>', 'let it run with these arguments instead', jsonOrText)
    .option('--answer <json>', 'take this for its result, and do not run it', jsonOrText)
    .option('--happened', 'what was cut off has happened')
    .option('--did-not-happen', 'it has not happened, and is done')
    .option('--same <id>', 'what is about to be done is this outcome on record, and is not done')
    .option('--result <json>', 'what it gave back, if it happened', jsonOrText)
    .option('--reason <text>', 'why; a refused agent is told')
    .option('--by <name>', 'who decides', whoami())
    .option('--resume', 'go on with the run at once')
    .action(async (run: string | undefined, question: string | undefined, options: Options) => {
      process.exitCode = await approve(run, question, options, output)
    })
  withStore(withJson(command))
  examples(command, [
    ['rath approve', 'what is asked, of every run that waits'],
    ['rath approve last --yes --resume', 'allow it, and go on'],
    ['rath approve 0198c2d1 3fa9 --no --reason "Not on a Friday."', 'refuse one of several'],
    ['rath approve last --edit \'{"cmd":"npm test"}\'', 'allow something else'],
    ['rath approve last --happened --result \'"sent"\'', 'say how a call ended that was cut off'],
    ['rath approve last --same call-3', 'it is what is on record: use that, and do nothing'],
  ])
}

async function approve(
  name: string | undefined,
  question: string | undefined,
  options: Options,
  output: Output,
): Promise<number> {
  const verdict = verdictOf(options)
  let run: string
  {
    await using store = await openToRead(options)
    const rows = name === undefined ? await waitingRuns(store) : [await findRun(store, name)]
    const waiting = (await Promise.all(rows.map(row => look(row, store)))).filter(
      ({ approvals, expired, reviews }) => approvals.length + expired.length + reviews.length > 0,
    )
    if (verdict === undefined) {
      list(waiting, options, output)
      const isOpen = waiting.some(({ approvals, reviews }) => approvals.length + reviews.length > 0)
      return name !== undefined && isOpen ? exit.waiting : exit.done
    }
    const chosen = choose(waiting, name, question, verdict)
    run = chosen.run
    await settle(chosen, verdict, options, store)
    if (!options.json) tellDecided(chosen, verdict, options, output)
  }
  if (options.resume)
    return (await import('./resume.ts')).resume(run, { ...options, json: options.json ?? false }, output)
  if (options.json) output.json({ run, decided: true })
  else output.tell(`Go on with: rath resume ${run}`)
  return exit.done
}

type Verdict = 'approved' | 'rejected' | 'edited' | 'answered' | 'happened' | 'did not happen' | 'the same'

function verdictOf(options: Options): Verdict | undefined {
  const { yes, no, edit, answer, happened, didNotHappen, same } = options
  const given: [Verdict, boolean][] = [
    ['approved', yes === true],
    ['rejected', no === true],
    ['edited', edit !== undefined],
    ['answered', answer !== undefined],
    ['happened', happened === true],
    ['did not happen', didNotHappen === true],
    ['the same', same !== undefined],
  ]
  const said = given.filter(([, isGiven]) => isGiven).map(([verdict]) => verdict)
  if (said.length <= 1) return said[0]
  throw new UsageError(`it cannot be ${said.join(' and ')} at once; decide one way.`)
}

async function waitingRuns(store: Store): Promise<RunRow[]> {
  const waiting = await store.runs.list({ status: 'waiting', limit: 1000 })
  return [...waiting, ...(await store.runs.list({ status: 'needs-review', limit: 1000 }))]
}

async function look(run: RunRow, store: Store): Promise<Waiting> {
  return {
    run,
    approvals: await openApprovals(run.id, store),
    expired: await expiredApprovals(run.id, store),
    reviews: await openReviews(run.id, store),
  }
}

function list(waiting: readonly Waiting[], { json }: Options, output: Output): void {
  if (json) {
    output.json({
      waiting: waiting.map(({ run, ...open }) => ({ run: run.id, status: run.status, ...open })),
    })
    return
  }
  if (waiting.length === 0) output.tell('Nothing waits for a decision.')
  for (const { run, approvals, expired, reviews } of waiting) {
    output.print(
      output.paint(
        'bold',
        `Run ${run.id} (${oneVisibleLine(String(run.data.workflow ?? ''))}, ${ago(run.updated)})`,
      ),
    )
    for (const open of approvals) {
      output.print(
        `  ${open.approval.slice(0, 12)}  ${oneVisibleLine(open.question)}\n${indent(callLines(open, output), '    ')}`,
      )
    }
    for (const { approval, question, until } of expired) {
      const ended = new Date(until as number).toISOString()
      output.print(`  ${approval.slice(0, 12)}  ${oneVisibleLine(question)} Nobody decided before ${ended}.`)
    }
    if (expired.length > 0 && approvals.length === 0)
      output.print(`  Go on without an answer: rath resume ${run.id}`)
    for (const review of reviews) {
      output.print(`  ${review.id}  ${reviewLines(review, output)}`)
    }
  }
}

interface Chosen {
  readonly run: string
  readonly approval?: OpenApproval
  readonly review?: Unfinished
}

function choose(
  waiting: readonly Waiting[],
  name: string | undefined,
  question: string | undefined,
  verdict: Verdict,
): Chosen {
  const isReview = verdict === 'happened' || verdict === 'did not happen' || verdict === 'the same'
  const open: (Chosen & { id: string })[] = []
  const late: string[] = []
  for (const { run, approvals, expired, reviews } of waiting) {
    if (expired.length > 0) late.push(run.id)
    if (isReview) for (const review of reviews) open.push({ run: run.id, review, id: review.id })
    else for (const approval of approvals) open.push({ run: run.id, approval, id: approval.approval })
  }
  const exact = open.filter(({ id }) => id === question)
  const begins = question === undefined ? open : open.filter(({ id }) => id.startsWith(question))
  const named = exact.length > 0 ? exact : begins
  if (named.length === 1) return named[0] as Chosen
  const ids = open.map(
    ({ run, id, review }) => `${name === undefined ? `${run} ` : ''}${review ? id : id.slice(0, 12)}`,
  )
  if (ids.length === 0 && late.length > 0 && !isReview)
    throw new UsageError(
      `nobody decided in time; the run goes on without an answer: ${late.map(run => `rath resume ${run}`).join(', ')}.`,
    )
  if (ids.length === 0)
    throw new UsageError(`nothing ${name ? `of run ${name} ` : ''}waits for such a decision.`)
  throw new UsageError(`say which one: ${ids.join(', ')}.`)
}

/** What was decided about, as it is on record: the newest question may be another one than was looked at. */
function tellDecided(
  { approval, review }: Chosen,
  verdict: Verdict,
  { edit }: Options,
  output: Output,
): void {
  const call = approval && { ...approval, ...(edit !== undefined && { args: edit as Json }) }
  const lines = call ? callLines(call, output) : review && effectLines(review, output)
  output.tell(`${verdict[0]?.toUpperCase()}${verdict.slice(1)}:\n${indent(lines ?? '')}`)
}

async function settle(chosen: Chosen, verdict: Verdict, options: Options, store: Store): Promise<void> {
  const { by, reason } = options
  const who = { by, ...(reason !== undefined && { reason }) }
  if (chosen.review) {
    const result = toJson(options.result ?? null, '--result')
    const { same } = options
    const found = same === undefined ? { happened: verdict === 'happened', result, ...who } : { same, ...who }
    return reviewEffect(chosen.run, chosen.review.id, found, { store, lease: usualLease })
  }
  const { approval, digest } = chosen.approval as OpenApproval
  const decision = {
    verdict: verdict as 'approved' | 'rejected' | 'edited' | 'answered',
    digest,
    ...who,
    ...(options.edit !== undefined && { edit: toJson(options.edit, '--edit') }),
    ...(options.answer !== undefined && { answer: toJson(options.answer, '--answer') }),
  }
  return decideApproval(chosen.run, approval, decision, store)
}
