import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/{base,session}/**/*.test.ts'] } },
      { test: { name: 'house', include: ['test/house/**/*.test.ts'], testTimeout: 120_000 } },
    ],
  },
})
