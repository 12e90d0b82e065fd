import { newId } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ExecResult, Sandbox } from '../../sandbox/spec.ts'
import { tool } from '../tool.ts'
import { inSandbox } from './readable.ts'

/** Seconds a command may take when the model does not say: a build fits, and a server that was started by mistake ends. */
const usualTimeout = 120
const longestTimeout = 24 * 60 * 60

const timeoutSchema: JsonObject = {
  type: 'number',
  exclusiveMinimum: 0,
  maximum: longestTimeout,
  description: `Seconds until it is killed; ${usualTimeout} by default.`,
}

/** Milliseconds. */
function secondsOf(timeout: number = usualTimeout): number {
  return timeout * 1000
}

/** Names no resource, and so runs alone: it sees what was written before it, and nobody sees half of what it does. */
export const runShellCommand = tool<{ cmd: string; cwd?: string; timeout?: number }>({
  name: 'run_shell_command',
  description:
    'Run a command in the workspace with /bin/sh and return its exit code and output. Everything it started ends with it, also in the background.',
  input: {
    type: 'object',
    properties: {
      cmd: { type: 'string', minLength: 1, description: 'The command; may have several lines.' },
      cwd: { type: 'string', description: 'Folder of the workspace to run in.' },
      timeout: timeoutSchema,
    },
    required: ['cmd'],
    additionalProperties: false,
  },
  effect: 'external',
  sandboxed: true,
  run: ({ cmd, cwd, timeout }, context) =>
    inSandbox(context, async sandbox => {
      const { signal } = context
      const options = { signal, timeout: secondsOf(timeout), ...(cwd !== undefined && { cwd }) }
      return commandReport(await sandbox.exec(cmd, options).result)
    }),
})

type Language = 'python' | 'javascript' | 'typescript' | 'bash'

interface Runner {
  readonly program: readonly string[]
  /** How it reads code: from its input with these flags, or from a file with this ending. Without them, code is its last argument. */
  readonly flags?: readonly string[]
  readonly ending?: string
}

const languages: Readonly<Record<Language, Runner>> = {
  python: { program: ['python3'], flags: ['-'], ending: 'py' },
  javascript: { program: ['node'], flags: ['-'], ending: 'js' },
  typescript: { program: ['node'], flags: ['--input-type=module-typescript', '-'], ending: 'ts' },
  // A script that comes in as the input is eaten by the first of its commands that reads.
  bash: { program: ['bash', '-c'] },
}

/** Names no resource, and so runs alone, like a command. */
export const runCode = tool<{ code: string; language?: Language; timeout?: number }>({
  name: 'run_code',
  description:
    'Run a program in the workspace and return its exit code and output. Each run is a new process: nothing is kept but files. Print what you want to see.',
  input: {
    type: 'object',
    properties: {
      code: { type: 'string', minLength: 1, description: 'The whole program.' },
      language: { enum: Object.keys(languages), description: 'python by default.' },
      timeout: timeoutSchema,
    },
    required: ['code'],
    additionalProperties: false,
  },
  effect: 'external',
  sandboxed: true,
  run: ({ code, language = 'python', timeout }, context) =>
    inSandbox(context, async sandbox => {
      const options = { signal: context.signal, timeout: secondsOf(timeout) }
      return commandReport(await runIn(sandbox, language, code, options))
    }),
})

/** From its input, so that the workspace stays as it is; from a file where a sandbox has no input. */
async function runIn(
  sandbox: Sandbox,
  language: Language,
  code: string,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<ExecResult> {
  const { program, flags, ending } = languages[language]
  const command = sandbox.interpreters?.[language] ?? program
  if (flags === undefined) return sandbox.exec([...command, code], options).result
  if (sandbox.capabilities.stdin) {
    return sandbox.exec([...command, ...flags], { ...options, stdin: code }).result
  }
  const file = `.openrath-${newId()}.${ending}`
  await sandbox.files.write(file, code)
  try {
    return await sandbox.exec([...command, file], options).result
  } finally {
    await sandbox.files.remove(file)
  }
}

/** How a command ended, for a model: what is not so is left out. How long it took is on the chunk, not in what was perceived. */
function commandReport(result: ExecResult): JsonObject {
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
