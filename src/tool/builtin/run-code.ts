import { newId } from '../../base/ids.ts'
import type { ExecResult, Sandbox } from '../../sandbox/spec.ts'
import { tool } from '../tool.ts'
import { commandReport, secondsOf, timeoutSchema } from './command-report.ts'
import { inSandbox } from './readable.ts'

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
