import type { JsonObject } from '../../base/json.ts'
import type { ExecResult } from '../../sandbox/spec.ts'

/** Seconds a command may take when the model does not say: a build fits, and a server that was started by mistake ends. */
const usualTimeout = 120
const longestTimeout = 24 * 60 * 60

export const timeoutSchema: JsonObject = {
  type: 'number',
  exclusiveMinimum: 0,
  maximum: longestTimeout,
  description: `Seconds until it is killed; ${usualTimeout} by default.`,
}

/** Milliseconds. */
export function secondsOf(timeout: number = usualTimeout): number {
  return timeout * 1000
}

/** How a command ended, for a model: what is not so is left out. How long it took is on the chunk, not in what was perceived. */
export function commandReport(result: ExecResult): JsonObject {
  const decoder = new TextDecoder()
  return {
    exitCode: result.exitCode,
    ...(result.signal !== undefined && { signal: result.signal }),
    stdout: decoder.decode(result.stdout),
    stderr: decoder.decode(result.stderr),
    ...(result.timedOut && { timedOut: true }),
    ...(result.truncated && { truncated: true }),
  }
}
