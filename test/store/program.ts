import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A TypeScript file run by Node, line by line. */
export interface Program {
  readonly child: ChildProcess
  /** The next line it prints; undefined when it has ended. */
  line(): Promise<string | undefined>
  lines(): AsyncIterable<string>
  /** Waits for its end; returns the exit code, or the signal that ended it. */
  ended(): Promise<number | string>
}

export function runFile(file: string, ...args: string[]): Program {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const end = once(child, 'close')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    line: async () => (await lines.next()).value,
    lines: () => ({ [Symbol.asyncIterator]: () => lines }),
    async ended() {
      const [code, signal] = await end
      return signal ?? code
    },
  }
}
