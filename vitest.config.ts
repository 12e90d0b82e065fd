import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

// What tests and the programs they start keep outside their own folders goes here, and not to the home of whoever runs them.
const home = mkdtempSync(join(tmpdir(), 'openrath-home-'))
process.env.OPENRATH_HOME = home
process.on('exit', () => rmSync(home, { recursive: true, force: true }))
// Tests start a thousand programs, most of them the same ones: Node keeps what it compiled of them.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')

export default defineConfig({
  test: {
    reporters: ['default', './scripts/closing-line.ts'],
    // Much of the time tests wait for processes and disks: one worker less than cores, the default, leaves half of a small machine idle.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/{base,session}/**/*.test.ts'],
          testTimeout: 60_000,
          isolate: false,
        },
      },
      {
        test: {
          name: 'store',
          include: ['test/store/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'tool', include: ['test/tool/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { name: 'flow', include: ['test/flow/**/*.test.ts'], testTimeout: 60_000, isolate: false } },
      {
        test: {
          name: 'run',
          include: ['test/run/**/*.test.ts'],
          testTimeout: 60_000,
          isolate: false,
          hookTimeout: 60_000,
        },
      },
      { test: { name: 'sandbox', include: ['test/sandbox/**/*.test.ts'], testTimeout: 60_000 } },
      {
        test: {
          name: 'memory',
          include: ['test/memory/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'model', include: ['test/model/**/*.test.ts'], testTimeout: 60_000, isolate: false } },
      {
        test: {
          name: 'evidence',
          include: ['test/evidence/**/*.test.ts'],
          testTimeout: 60_000,
          isolate: false,
        },
      },
      { test: { name: 'cli', include: ['test/cli/**/*.test.ts'], testTimeout: 120_000 } },
      { test: { name: 'house', include: ['test/house/**/*.test.ts'], testTimeout: 120_000 } },
    ],
  },
})
