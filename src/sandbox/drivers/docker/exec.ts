import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type Docker from 'dockerode'
import type { RunningScript } from '../../shell/command.ts'
import type { ShellResult } from '../../shell/shell.ts'
import type { ExecOutput } from '../../spec.ts'
import { Demux } from './demux.ts'

export interface ExecRequest {
  readonly argv: readonly string[]
  readonly env?: readonly string[]
  readonly user?: string | undefined
  /** All of the standard input; what is run reads it to its end. */
  readonly input?: Uint8Array | undefined
}

/** How long the engine may take to know that a command has ended whose output has. */
const patience = 60_000

/** Starts a program in a container. */
export async function startExec(
  container: Docker.Container,
  { argv, env = [], user, input }: ExecRequest,
  output: (output: ExecOutput) => boolean,
): Promise<RunningScript> {
  const exec = await container.exec({
    Cmd: [...argv],
    Env: [...env],
    WorkingDir: '/',
    AttachStdin: input !== undefined,
    AttachStdout: true,
    AttachStderr: true,
    ...(user !== undefined && { User: user }),
  })
  const stream: Duplex = await exec.start({ hijack: true, stdin: input !== undefined })
  const { promise: drained, resolve } = Promise.withResolvers<void>()
  const demux = new Demux()
  stream.on('data', (data: Buffer) => {
    // Every piece is delivered, also behind the one that asks to wait.
    let goOn = true
    for (const piece of demux.read(data)) goOn = output(piece) && goOn
    if (!goOn) stream.pause()
  })
  for (const end of ['end', 'close', 'error']) stream.once(end, () => resolve())
  stream.on('error', () => {})
  if (input !== undefined) stream.end(Buffer.from(input))
  return {
    ended: drained.then(() => exitCodeOf(exec)).finally(() => stream.destroy()),
    flow: goOn => void (goOn ? stream.resume() : stream.pause()),
    abandon: () => void stream.destroy(),
  }
}

/** Null when the container is gone, or the command goes on and its connection is lost. */
async function exitCodeOf(exec: Docker.Exec): Promise<number | null> {
  const start = performance.now()
  try {
    while (performance.now() - start < patience) {
      const { Running, ExitCode } = await exec.inspect()
      if (!Running) return ExitCode ?? null
      await pause(10)
    }
  } catch {
    // Removed with its container.
  }
  return null
}

/** Runs a program and keeps all of its output. */
export async function runExec(container: Docker.Container, request: ExecRequest): Promise<ShellResult> {
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const { ended } = await startExec(container, request, ({ stream, data }) => {
    kept[stream].push(data)
    return true
  })
  const exitCode = await ended
  return {
    exitCode: exitCode ?? -1,
    output: new Uint8Array(Buffer.concat(kept.stdout)),
    errors: Buffer.concat(kept.stderr).toString('utf8'),
  }
}
