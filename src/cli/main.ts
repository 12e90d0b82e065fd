#!/usr/bin/env node
import '../base/node-version.ts'
import { Output } from './output.ts'
import { runCommand } from './program.ts'

// A reader that has seen enough, such as `head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const code = await runCommand(process.argv.slice(2), new Output(process))
// What a user's module left running must not keep the command from ending.
process.exit(code)
