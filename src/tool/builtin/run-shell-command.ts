import { tool } from '../tool.ts'
import { commandReport, secondsOf, timeoutSchema } from './command-report.ts'
import { inSandbox } from './readable.ts'

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
