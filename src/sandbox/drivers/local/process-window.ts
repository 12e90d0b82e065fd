import { readFileSync } from 'node:fs'

/**
 * Tells processes that started after a moment by their numbers, without a look at each: a machine has hundreds, and a command leaves none.
 * Linux gives numbers out in a circle, so the new ones follow the last of that moment unless the circle was closed since, which the
 * count of forks rules out. Where nothing can be ruled out, every process may be new.
 */
export class ProcessWindow {
  readonly #forks = forks()
  readonly #last = lastNumber()

  /** Call it after listing `/proc`. */
  filter(): (pid: number) => boolean {
    const [before, now] = [this.#last, lastNumber()]
    const made = forks() - this.#forks
    // Half the circle: numbers in use are stepped over.
    if (!(made < circle() / 2) || Number.isNaN(before) || Number.isNaN(now)) return () => true
    return now >= before ? pid => pid > before : pid => pid > before || pid <= now
  }
}

/** Processes and threads made since the machine started; not a number where nobody counts. */
function forks(): number {
  return Number(/^processes (\d+)$/m.exec(text('/proc/stat'))?.[1])
}

/** The number given out last, as this process sees it. */
function lastNumber(): number {
  return Number(/(\d+)\s*$/.exec(text('/proc/loadavg'))?.[1])
}

function circle(): number {
  return Number(text('/proc/sys/kernel/pid_max'))
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
