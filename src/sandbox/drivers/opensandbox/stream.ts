import type { Sandbox } from '@alibaba-group/opensandbox'
import type { RunningScript } from '../../shell/command.ts'
import { quote } from '../../shell/shell.ts'
import type { ExecOutput } from '../../spec.ts'

/** A command line of one argument may have no more bytes on Linux. */
const longest = 128 * 1024 - 1

export interface StreamRequest {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** What both streams end with, when they are whole. */
  readonly endMark?: string
}

/**
 * Starts a program. The server sends lines without their line feeds, and an empty line as one; so whether the last line had its line feed
 * is known only by an end mark. It holds the stream open for a second after the last word, which nobody waits for.
 */
export async function startStream(
  { commands }: Sandbox,
  { argv, env = {}, endMark }: StreamRequest,
  output: (output: ExecOutput) => boolean,
): Promise<RunningScript> {
  const line = `exec ${argv.map(quote).join(' ')}`
  if (Buffer.byteLength(line) > longest)
    throw new Error('the command is too long; write it to a file and run that')
  const events = commands.runStream(line, { workingDirectory: '/', envs: env })[Symbol.asyncIterator]()
  // The first event says that it runs, or what is wrong with the request.
  const first = await events.next()
  const id = first.done ? undefined : first.value.text
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  let isAbandoned = false

  async function follow(): Promise<number | null> {
    try {
      for (let next = first; !next.done && !isAbandoned; next = await events.next()) {
        const { type, text = '', error } = next.value
        if (type === 'stdout' || type === 'stderr') {
          if (!deliver(type, text)) gate = Promise.withResolvers<void>()
          await gate.promise
        } else if (type === 'execution_complete') return 0
        else if (type === 'error') return exitCodeOf(error)
      }
    } catch {
      // The connection broke, or the sandbox is gone.
    } finally {
      void drain(events)
    }
    return null
  }

  function deliver(stream: ExecOutput['stream'], text: string): boolean {
    const line = text === '\n' ? '' : text
    const isLast = endMark !== undefined && line.endsWith(endMark)
    const whole = isLast ? line.slice(0, -endMark.length) : `${line}\n`
    return whole === '' || output({ stream, data: new TextEncoder().encode(whole) })
  }

  return {
    ended: follow(),
    flow: goOn => {
      if (goOn) gate.resolve()
    },
    abandon: () => {
      isAbandoned = true
      gate.resolve()
      // Aborting the request would not stop the command.
      if (id !== undefined) commands.interrupt(id).catch(() => {})
    },
  }
}

/** Of a command that a signal ended the server says -1. */
function exitCodeOf(error: Readonly<Record<string, unknown>> | undefined): number | null {
  const code = Number(error?.evalue)
  return Number.isInteger(code) && code >= 0 ? code : null
}

async function drain(events: AsyncIterator<unknown>): Promise<void> {
  try {
    while (!(await events.next()).done);
  } catch {
    // Closed with its sandbox.
  }
}
