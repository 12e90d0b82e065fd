import { RathError } from '../base/errors.ts'
import { unfinishedOf } from '../run/approve/review.ts'
import type { Approve, CallOptions } from '../run/context.ts'
import { approvalsIn } from '../run/run.ts'
import type { Runtime } from '../run/runtime.ts'
import { Session } from '../session/session.ts'
import { approver } from './ask.ts'
import { callLines, reviewLines } from './call-print.ts'
import { type ExitCode, exit, UsageError } from './errors.ts'
import { Terminal } from './lines.ts'
import { Output } from './output.ts'
import { Progress } from './progress.ts'
import { count, indent, oneVisibleLine, plain } from './text.ts'

export interface DriveOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  /** Questions are asked here, and do not park the run. */
  readonly ask?: boolean
  readonly tag?: string
  /** Goes ahead with a session that was altered. */
  readonly acceptAltered?: boolean
}

export interface Driven {
  /** The run's id, as soon as the work has begun. */
  id(): string
  start(options: CallOptions): Promise<Session>
}

/** Follows a run to its end with live progress, and says how it ended and how to go on. Ctrl-C cancels it, a second one ends the process. */
export async function drive(
  work: Driven,
  runtime: Runtime,
  options: DriveOptions,
  output: Output,
): Promise<ExitCode> {
  const abort = new AbortController()
  const progress = new Progress(output, { quiet: options.quiet ?? false })
  const interrupt = () => {
    if (abort.signal.aborted) process.exit(exit.failed)
    progress.line('Cancelling; once more to end at once.')
    abort.abort(new Error('cancelled with Ctrl-C'))
  }
  using terminal = options.ask ? terminalOf(output, interrupt) : undefined
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  try {
    const session = await work.start({
      ...(options.acceptAltered && { altered: 'accept' as const }),
      signal: abort.signal,
      onEvent: progress.onEvent,
      ...(terminal && { approve: asker(terminal, runtime, progress) }),
    })
    progress.stop()
    if (options.tag !== undefined) {
      await runtime.sessions.put(session)
      await runtime.sessions.tag(session.id, options.tag)
    }
    tellDone(work.id(), session, options, output)
    return session.stopped === undefined ? exit.done : exit.failed
  } catch (thrown) {
    progress.stop()
    if (!(thrown instanceof RathError)) throw thrown
    return await tellEnd(thrown, work.id(), runtime, options, output)
  } finally {
    progress.stop()
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
  }
}

/** Opened before the run begins: what was typed until then, or is piped in, answers nothing. */
function terminalOf({ stdout }: Output, interrupt: () => void): Terminal {
  const terminal = Terminal.open(process.stdin, stdout, interrupt)
  if (terminal) return terminal
  throw new UsageError(
    '--ask shows calls and reads answers on a terminal, and there is none here. Leave it out: the run then waits, and rath approve decides.',
  )
}

function asker(terminal: Terminal, runtime: Runtime, progress: Progress): Approve {
  return approver({
    // What is decided about is shown where the answer is typed, also when the output goes elsewhere.
    output: new Output({ stdout: terminal.output, stderr: process.stderr, env: process.env }),
    runtime,
    lines: () => terminal.ask(),
    pause: () => progress.hold(),
    resume: () => {
      terminal.rest()
      progress.release()
    },
  })
}

function tellDone(run: string, session: Session, { json, quiet }: DriveOptions, output: Output): void {
  const { usage, text, id, stopped } = session
  if (json) output.json({ run, status: 'done', session: id, text, usage, ...(stopped && { stopped }) })
  else if (text) output.print(plain(text))
  if (stopped && !json) {
    const stop = session.chunks.findLast(chunk => chunk.kind === 'error' && chunk.error === stopped)
    const what = `stopped before it was done: ${stop?.text ?? stopped}`
    output.tell(`${output.paint('red', 'rath:', output.stderr)} ${plain(what)}`)
    output.tell(`Go on from there: rath run FILE --from ${id}`)
  }
  if (json || quiet) return
  const cost = usage.cost === undefined ? '' : `, $${usage.cost.toFixed(4)}`
  output.tell(
    output.paint('dim', `session ${id}, ${count(usage.totalTokens, 'token')}${cost}`, output.stderr),
  )
}

async function tellEnd(
  error: RathError,
  run: string,
  runtime: Runtime,
  { json }: DriveOptions,
  output: Output,
): Promise<ExitCode> {
  const isKept = await isRecorded(run, runtime)
  const status = statusOf(error)
  const session = error.session instanceof Session ? error.session.id : undefined
  if (json) {
    const { code, message, data } = error
    output.json({ run, status, session, error: { code, message, data } })
  } else if (status === 'waiting') tellWaiting(error, run, output)
  else {
    const what = status === 'cancelled' ? 'cancelled' : `failed: ${error.message}`
    output.tell(`${output.paint('red', 'rath:', output.stderr)} ${plain(what)}`)
    if (isKept) output.tell(`Go on where it stood: rath resume ${run}`)
  }
  return status === 'waiting' ? exit.waiting : exit.failed
}

/** What a person is asked, each with the line that answers it. */
function tellWaiting(error: RathError, run: string, output: Output): void {
  if (error.code === 'needs-review') {
    output.tell(`Run ${run} needs somebody who finds out whether this happened, and says so:`)
    for (const call of unfinishedOf(error)) {
      output.tell(indent(reviewLines(call, output)))
      const same = call.recorded?.map(({ id }) => `--same ${id}, or `).join('') ?? ''
      output.tell(`  rath approve ${run} ${call.id} ${same}--happened, or --did-not-happen`)
    }
  } else {
    output.tell(`Run ${run} waits for a decision:`)
    for (const open of approvalsIn(error)) {
      output.tell(indent(`${oneVisibleLine(open.question)}\n${callLines(open, output)}`))
      output.tell(`  rath approve ${run} ${open.approval.slice(0, 12)} --yes, or --no --reason "…"`)
    }
  }
  output.tell(`Then: rath resume ${run}`)
}

function statusOf({ code }: RathError): 'waiting' | 'cancelled' | 'failed' {
  if (code === 'run-waiting' || code === 'needs-review') return 'waiting'
  return code === 'cancelled' ? 'cancelled' : 'failed'
}

async function isRecorded(run: string, runtime: Runtime): Promise<boolean> {
  if (!runtime.isOpen) return false
  return runtime.runs.get(run).then(
    () => true,
    () => false,
  )
}
