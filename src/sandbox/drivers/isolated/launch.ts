import type { ChildProcess } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { RathError, show } from '../../../base/errors.ts'
import { startSystem } from '../../../base/programs.ts'
import { shellPipe } from './forwarder.ts'
import { withoutInherited } from './inherited.ts'
import type { WatchedCommand } from './memory-watch.ts'

export interface Isolation {
  /** Put before bubblewrap: the way into cgroups, namespaces and another user. */
  readonly before: readonly string[]
  /** Variables that these need. None of them reaches the command. */
  readonly env: Readonly<Record<string, string>>
  readonly bwrap: string
  readonly options: readonly string[]
  readonly filter: Uint8Array
  /** Put before the program, inside. */
  readonly inside: readonly string[]
}

/** Starts a program behind walls as a child of this process, for one that stays. bubblewrap stays as the parent of its process number 1, with which everything inside ends. */
export function launchIsolated(
  argv: readonly [string, ...string[]],
  hasInput: boolean,
  { before, env, bwrap, options, filter, inside }: Isolation,
): WatchedCommand & { readonly child: ChildProcess } {
  const [first, ...rest] = [
    ...before,
    ...[bwrap, '--args', '3', '--seccomp', '4', '--json-status-fd', '5', '--'],
    ...insideCommand(argv, inside),
  ]
  const given = hasInput ? 'pipe' : 'ignore'
  using files = withoutInherited([given, 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'])
  const child = startSystem(first as string, rest, {
    // What comes before bubblewrap runs outside and perhaps as root, so it gets none of the command's own variables.
    env,
    cwd: '/',
    detached: true,
    stdio: files.stdio,
  })
  const [toOptions, toFilter, fromStatus, fromShell] = child.stdio.slice(3, 7) as unknown as Duplex[] & Pipes
  // Through a pipe and not on the command line, which every user of the machine can read.
  toOptions.on('error', () => {}).end(options.map(option => `${option}\0`).join(''))
  toFilter.on('error', () => {}).end(filter)
  let isMissing = false
  fromShell
    .on('error', () => {})
    .on('data', () => {
      isMissing = true
    })
  let status = ''
  fromStatus
    .on('error', () => {})
    .on('data', (data: Buffer) => {
      status += data.toString('latin1')
    })
  const inner = () => Number(/"child-pid": (\d+)/.exec(status)?.[1]) || undefined
  return {
    child,
    inner,
    kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      // When process number 1 is killed, bubblewrap ends after the last of the others. It has none while the walls go up.
      const first = inner()
      if (first === undefined || !killed(first)) child.kill('SIGKILL')
    },
    end: async () => {},
    failure(exitCode, stderr) {
      if (!status.includes('"exit-code"'))
        return notStarted(new TextDecoder().decode(stderr).trim(), exitCode)
      return isMissing ? notFound(argv[0]) : undefined
    },
  }
}

/** What bubblewrap runs. */
export function insideCommand(argv: readonly string[], inside: readonly string[]): string[] {
  return [...inside, '/bin/sh', '-c', checkAndRun, ...argv]
}

export function notStarted(said: string, exitCode: number | null): RathError {
  const why = said || 'no reason was given'
  return new RathError('sandbox-failed', `The command was not started: ${why}`, { data: { exitCode } })
}

export function notFound(program: string): RathError {
  return new RathError('sandbox-failed', `${show(program)} could not be started: there is no such program.`, {
    data: { program, code: 'ENOENT' },
  })
}

type Pipes = readonly [Duplex, Duplex, Duplex, Duplex]

/** Says through a pipe of its own that there is no such program, and closes the pipe before there is one. */
const checkAndRun = `command -v -- "$0" >/dev/null 2>&1 || { echo >&${shellPipe}; exit 127; }; exec ${shellPipe}>&-; exec "$0" "$@"`

function killed(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}
