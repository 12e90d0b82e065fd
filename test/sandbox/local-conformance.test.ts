import { test } from 'vitest'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import { testSandbox } from '../../src/testing/index.ts'

for (const { name, run } of testSandbox(localBackend())) test(name, run)
