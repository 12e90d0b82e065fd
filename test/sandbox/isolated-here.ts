import { test } from 'vitest'
import { isolatedBackend } from '../../src/sandbox/drivers/isolated/driver.ts'

export const isolated = isolatedBackend()
const { available: isHere, reason } = (await isolated.probe?.()) ?? { available: true }
if (!isHere) console.warn(`Tests of isolated are left out: ${reason}`)

/** Tests that open a sandbox, where this machine lets them. */
export const testHere = test.runIf(isHere)
/** Those that only root can make. */
export const testAsRoot = test.runIf(isHere && process.getuid?.() === 0)
