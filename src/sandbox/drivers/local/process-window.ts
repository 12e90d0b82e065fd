import { readFileSync } from 'node:fs'

/**
 * Tells processes that started after a moment by their numbers, without a look at each: a machine has hundreds, and a command leaves none.
 * Linux gives numbers out in a circle, so the new ones follow the last of that moment unless the circle was closed since, which the
 * count of forks rules out. Where nothing can be ruled out, every process may be new.
 */
export class ProcessWindow {
  readonly #read: (path: string) => string
  readonly #forks: number
  readonly #last: number

  /** With another `read`, of the machine that it reads. */
  constructor(read = text) {
    this.#read = read
    this.#forks = this.#countForks()
    this.#last = this.#lastNumber()
  }

  /** Call it after listing `/proc`. */
  filter(): (pid: number) => boolean {
    const [before, now] = [this.#last, this.#lastNumber()]
    const made = this.#countForks() - this.#forks
    const circle = Number(this.#read('/proc/sys/kernel/pid_max'))
    // Half the circle: numbers in use are stepped over.
    if (!(made < circle / 2) || Number.isNaN(before) || Number.isNaN(now)) return () => true
    // Numbers beyond the last one are from the round before.
    return now >= before ? pid => pid > before && pid <= now : pid => pid > before || pid <= now
  }

  /** Processes and threads made since the machine started; not a number where nobody counts. */
  #countForks(): number {
    return Number(/^processes (\d+)$/m.exec(this.#read('/proc/stat'))?.[1])
  }

  /** The number given out last, as this process sees it. */
  #lastNumber(): number {
    return Number(/(\d+)\s*$/.exec(this.#read('/proc/loadavg'))?.[1])
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
