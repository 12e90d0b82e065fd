import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    reporters: ['default', './scripts/closing-line.ts'],
    projects: [
      { test: { name: 'unit', include: ['test/{base,session}/**/*.test.ts'] } },
      {
        test: {
          name: 'store',
          include: ['test/store/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'tool', include: ['test/tool/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { name: 'flow', include: ['test/flow/**/*.test.ts'] } },
      { test: { name: 'run', include: ['test/run/**/*.test.ts'] } },
      { test: { name: 'sandbox', include: ['test/sandbox/**/*.test.ts'], testTimeout: 60_000 } },
      { test: { name: 'model', include: ['test/model/**/*.test.ts'] } },
      { test: { name: 'house', include: ['test/house/**/*.test.ts'], testTimeout: 120_000 } },
    ],
  },
})
