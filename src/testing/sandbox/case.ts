import assert from 'node:assert/strict'
import type { ExecOptions, ExecResult, Sandbox, SandboxBackend, SandboxSpec } from '../../sandbox/spec.ts'
import type { ConformanceCase } from '../conformance.ts'

export interface SandboxTestOptions {
  /** What each case opens; no spec by default. */
  spec?(): SandboxSpec | Promise<SandboxSpec>
  /** Cases that this backend does not pass, by name, each with the reason. */
  readonly except?: Readonly<Record<string, string>>
}

export type SandboxCases = Readonly<Record<string, (sandbox: Sandbox) => Promise<void>>>

/** Cases by name, each in a sandbox of its own that is closed whatever happens. */
export function casesOn(
  backend: SandboxBackend,
  { spec }: SandboxTestOptions,
  cases: SandboxCases,
): ConformanceCase[] {
  return Object.entries(cases).map(([name, run]) => ({
    name,
    async run() {
      await using sandbox = await backend.open(await spec?.())
      await run(sandbox)
    },
  }))
}

export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** Runs a command that must succeed and returns what it wrote. */
export async function output(
  sandbox: Sandbox,
  command: string | readonly string[],
  options: ExecOptions = {},
): Promise<string> {
  const result = await sandbox.exec(command, options).result
  assert.equal(result.exitCode, 0, `${String(command)}: ${textOf(result.stderr)}`)
  return textOf(result.stdout)
}

/**
 * The result of a command whose time is up. A busy machine may need longer to start it than it has: it gets more time until it has come
 * as far as `isFarEnough` says.
 */
export async function outOfTime(
  sandbox: Sandbox,
  command: string,
  isFarEnough: (result: ExecResult) => boolean,
): Promise<ExecResult> {
  for (let timeout = 300; timeout < 100_000; timeout *= 2) {
    const result = await sandbox.exec(command, { timeout }).result
    assert.equal(result.timedOut, true)
    if (isFarEnough(result)) return result
  }
  return assert.fail(`${command} did not come far enough in a minute`)
}

/** Ended by a kill, however the backend says it. */
export function assertKilled({ exitCode, signal }: ExecResult): void {
  assert.ok(exitCode !== 0, `it ended by itself`)
  assert.ok(signal === undefined || signal === 'SIGKILL' || signal === 'SIGTERM', signal)
}
