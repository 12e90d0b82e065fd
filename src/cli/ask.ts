import { userInfo } from 'node:os'
import type { Json } from '../base/json.ts'
import type { Approve } from '../run/context.ts'
import type { Runtime } from '../run/runtime.ts'
import { type ApprovalDecision, type ApprovalRequest, editProblem } from '../tool/approval.ts'
import { isBuiltinTool } from '../tool/builtin/builtin-tools.ts'
import { callLines, offScreen, type ShownCall } from './call-print.ts'
import type { Lines } from './lines.ts'
import type { Output } from './output.ts'
import { hasControls, indent, oneVisibleLine, plain, safeJson, visible } from './text.ts'

export interface AskOptions {
  /** Of the terminal that the answer is typed on. */
  readonly output: Output
  /** Where answers come from, once the question is there. Undefined when no person can answer. */
  lines(): Promise<Lines | undefined>
  /** Whose sessions are asked about. */
  readonly runtime: Runtime
  /** Around a question: nothing else may draw. */
  readonly pause?: () => void
  readonly resume?: () => void
}

/** Asks whoever sits at the terminal, one question at a time: yes, no, edit the arguments, or why it is wanted. */
export function approver({ output, lines, runtime, pause, resume }: AskOptions): Approve {
  let last: Promise<unknown> = Promise.resolve()
  const ask = async (request: ApprovalRequest): Promise<ApprovalDecision> => {
    const { tool, args, question, signal } = request
    if (signal.aborted) return { verdict: 'rejected', reason: 'The run was cancelled.' }
    pause?.()
    try {
      const builtin = isBuiltinTool(tool)
      const before = builtin ? await fileToWrite(request, runtime) : undefined
      const call: ShownCall = { tool: tool.name, args, builtin, before }
      const shown = indent(callLines(call, output))
      const hidden = offScreen(shown, call, output)
      output.print(
        `${output.paint('yellow', '?')} ${oneVisibleLine(question)}\n${shown}${hidden ? `\n${hidden}` : ''}`,
      )
      const answers = await lines()
      if (answers?.isTerminal) return await decide(request, answers, output)
      output.print('  Refused: approvals are read from a terminal only.')
      return { verdict: 'rejected', reason: 'Nobody was asked: approvals are read from a terminal only.' }
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

/** Larger files are not compared with what is written. */
const largest = 1_000_000

/** The file that a call would write, as the branch of its session has it; undefined when there is none, or none to compare with. */
async function fileToWrite(
  { args, session, tool }: ApprovalRequest,
  runtime: Runtime,
): Promise<string | undefined> {
  const { path } = args as { path?: unknown }
  if (tool.name !== 'write_workspace_file' || typeof path !== 'string') return undefined
  try {
    const { sandbox } = await runtime.places.open({ session })
    const found = await sandbox.files.stat(path)
    if (found?.kind !== 'file' || found.size > largest) return undefined
    return new TextDecoder('utf-8', { fatal: true }).decode(await sandbox.files.read(path))
  } catch {
    return undefined
  }
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
        output.print(indent(whyAsked(request), '  │ '))
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
  { tool, args, signal }: ApprovalRequest,
  lines: Lines,
  output: Output,
): Promise<Json | undefined> {
  const given = args as Record<string, Json>
  if (isCommand(tool) && typeof given?.cmd === 'string' && !hasControls(given.cmd)) {
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

function isCommand(tool: ApprovalRequest['tool']): boolean {
  return tool.name === 'run_shell_command' && isBuiltinTool(tool)
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
    return visible(said.length > 0 ? `${who} said:\n${said.join('\n')}` : `${who} gave no reason.`)
  }
  return 'Nothing on the record says why.'
}

export function whoami(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
