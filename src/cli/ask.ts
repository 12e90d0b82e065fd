import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import type { Json } from '../base/json.ts'
import type { Approve } from '../run/context.ts'
import type { Session } from '../session/session.ts'
import { type ApprovalDecision, type ApprovalRequest, editProblem } from '../tool/approval.ts'
import { callLines } from './call-print.ts'
import { Lines } from './lines.ts'
import type { Output } from './output.ts'
import { hasControls, indent, plain, safeJson } from './text.ts'

export interface AskOptions {
  readonly output: Output
  lines(): Lines
  /** The text of a file as a session sees it; undefined when it has none. */
  readonly read?: (session: Session, path: string) => Promise<string | undefined>
  /** Around a question: nothing else may draw. */
  readonly pause?: () => void
  readonly resume?: () => void
}

/** Asks whoever sits at the terminal, one question at a time: yes, no, edit the arguments, or why it is wanted. */
export function approver({ output, lines, read = readPlaced, pause, resume }: AskOptions): Approve {
  let last: Promise<unknown> = Promise.resolve()
  const ask = async (request: ApprovalRequest): Promise<ApprovalDecision> => {
    const { tool, args, question, session, signal } = request
    if (signal.aborted) return { verdict: 'rejected', reason: 'The run was cancelled.' }
    pause?.()
    try {
      const { path } = (args ?? {}) as { path?: unknown }
      const before = typeof path === 'string' ? await read(session, path) : undefined
      output.print(`${output.paint('yellow', '?')} ${plain(question)}`)
      output.print(indent(callLines(tool.name, args, output, before)))
      return await decide(request, lines(), output)
    } finally {
      resume?.()
    }
  }
  return request => {
    const answer = last.then(() => ask(request))
    last = answer.catch(() => {})
    return answer
  }
}

/** The same for a command that has no lines of its own yet. */
export function asker(
  output: Output,
  progress: { start(): void; stop(): void },
  onInterrupt: () => void,
): Approve {
  let lines: Lines | undefined
  return approver({
    output,
    lines: () => {
      lines ??= new Lines({ input: process.stdin, output: output.stdout, onInterrupt })
      return lines
    },
    pause: () => progress.stop(),
    resume: () => progress.start(),
  })
}

async function decide(request: ApprovalRequest, lines: Lines, output: Output): Promise<ApprovalDecision> {
  const by = whoami()
  const { signal } = request
  for (;;) {
    const answer = await lines.read('Allow it? [y]es, [n]o, [e]dit, why: ', { signal, fresh: true })
    if (answer === undefined) return { verdict: 'rejected', by, reason: 'Nobody was there to answer.' }
    const [word = '', ...rest] = answer.trim().split(/\s+/)
    const reason = rest.join(' ')
    switch (word.toLowerCase()) {
      case 'y':
      case 'yes':
        return { verdict: 'approved', by, ...(reason && { reason }) }
      case 'n':
      case 'no':
        return { verdict: 'rejected', by, ...(reason && { reason }) }
      case 'e':
      case 'edit': {
        const edit = await editArguments(request, lines, output)
        if (edit === undefined) break
        const problem = await editProblem(request.tool, edit)
        if (problem === undefined) return { verdict: 'edited', by, edit }
        output.print(indent(plain(`That does not fit ${request.tool.name}: ${problem}`)))
        break
      }
      case 'w':
      case 'why':
        output.print(indent(whyAsked(request)))
        break
      default:
        output.print(
          '  y to allow it, n to refuse (n REASON tells the agent why), e to change it first, why to see what led here.',
        )
    }
  }
}

/** A command of one line is edited as it is, anything else as JSON: a line break in what stands on the line to begin with would be taken for Enter. */
async function editArguments(
  { args, signal }: ApprovalRequest,
  lines: Lines,
  output: Output,
): Promise<Json | undefined> {
  const given = args as Record<string, Json>
  if (typeof given?.cmd === 'string' && !hasControls(given.cmd)) {
    const cmd = await lines.read('$ ', { prefill: given.cmd, signal, fresh: true })
    return cmd === undefined || cmd === '' ? undefined : { ...given, cmd }
  }
  const text = await lines.read('arguments: ', { prefill: safeJson(args) ?? '', signal, fresh: true })
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch (error) {
    output.print(`  That is no JSON: ${(error as Error).message}`)
    return undefined
  }
}

/** What the agent said before it asked for the call. */
function whyAsked({ session, call }: ApprovalRequest): string {
  for (const chunk of [...session.chunks].reverse()) {
    if (
      chunk.kind !== 'assistant' ||
      !chunk.content.some(part => part.type === 'tool-call' && part.id === call.id)
    )
      continue
    const said = chunk.content.flatMap(part =>
      part.type === 'text' || part.type === 'reasoning' ? [part.text] : [],
    )
    const who = `${chunk.by ?? 'The agent'}${chunk.model ? ` (${chunk.model})` : ''}`
    return plain(said.length > 0 ? `${who} said:\n${said.join('\n')}` : `${who} gave no reason.`)
  }
  return 'Nothing on the record says why.'
}

/** The file where the session was placed. */
async function readPlaced({ placement }: Session, path: string): Promise<string | undefined> {
  if (typeof placement?.spec !== 'string') return undefined
  return readFile(resolve(placement.spec, path), 'utf8').catch(() => undefined)
}

export function whoami(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
