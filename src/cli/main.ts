#!/usr/bin/env node
import '../base/node-version.ts'
import { Output } from './output.ts'
import { runCommand } from './program.ts'

// A reader that has seen enough, such as `head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
// Nobody listens to what is said about the work: the work goes on.
process.stderr.on('error', () => {})

// What Node itself thinks of SQLite or of TypeScript is nothing that a user of the command can act on.
process.removeAllListeners('warning')
process.on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') process.stderr.write(`rath: ${message}\n`)
})

const code = await runCommand(process.argv.slice(2), new Output(process))
// What a user's module left running must not keep the command from ending.
process.exit(code)
