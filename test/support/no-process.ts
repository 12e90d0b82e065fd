import childProcess from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'

// Loaded by `npm run test:quick` before each file: a test that starts a process belongs to the files that it leaves out.
for (const name of ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'] as const) {
  childProcess[name] = ((program: string) => {
    throw new Error(
      `${program} was started by a test of npm run test:quick; leave its file out in vitest.config.ts`,
    )
  }) as never
}
syncBuiltinESMExports()
