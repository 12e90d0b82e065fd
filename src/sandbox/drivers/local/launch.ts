import { RathError, show } from '../../../base/errors.ts'
import { startGiven } from '../../../base/programs.ts'
import type { Launched, LaunchOptions } from '../../host/command.ts'
import type { HostFolder } from '../../spec.ts'
import { ProcessWindow } from './process-window.ts'
import { endTree, killTree, markName, openMark } from './processes.ts'

/** Starts a program with a mark, in a group and a session of its own. Behind `enter`, `cwd` is as the program sees it. */
export function launchLocal(
  argv: readonly [string, ...string[]],
  { cwd, env, hasInput }: LaunchOptions,
  { mark, enter }: { readonly mark: string; readonly enter: HostFolder['enter'] },
): Launched {
  const since = new ProcessWindow()
  using file = openMark(mark)
  const [program, ...args] = enter === undefined ? argv : [...enter, '/bin/sh', '-c', goAndRun, cwd, ...argv]
  const child = startGiven(program as string, args, {
    ...(enter === undefined && { cwd }),
    env: { ...env, [markName]: (process.env[markName] ?? '') + mark },
    // So that one signal reaches all of it and none of ours.
    detached: true,
    stdio: [hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe', file?.fd ?? 'ignore'],
  })
  return {
    child,
    kill() {
      // Once the leader is gone and collected, its number may be given to another.
      const isThere = child.exitCode === null && child.signalCode === null
      killTree({ mark, since, leader: isThere ? child.pid : undefined })
    },
    // The number is still known to be free: the process was collected in this very turn.
    end: () => endTree({ mark, since, leader: child.pid }),
    failure: (exitCode, stderr) =>
      enter === undefined || !notStarted.includes(exitCode) ? undefined : startFailure(argv[0], stderr),
  }
}

/** A way into another mount namespace ends at its root; from there the program's folder is one step, and the program the next. */
const goAndRun = 'cd -- "$0" && exec "$@"'
/** Not found, and found where this user may not look or may not run it. */
const notStarted: readonly (number | null)[] = [127, 126]

function startFailure(program: string, stderr: Uint8Array): RathError | undefined {
  const said = new TextDecoder().decode(stderr)
  const [, why] = /^\S+ (?:line )?\d+: exec: .*: (not found|Permission denied)\s*$/.exec(said) ?? []
  if (why === undefined) return undefined
  const isMissing = why === 'not found'
  const reason = isMissing
    ? 'there is no such program'
    : 'a folder of its PATH, or the program, is not for this user'
  return new RathError('sandbox-failed', `${show(program)} could not be started: ${reason}.`, {
    data: { program, code: isMissing ? 'ENOENT' : 'EACCES' },
  })
}
