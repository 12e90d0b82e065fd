import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { isolatedBackend } from '../../../src/sandbox/drivers/isolated/driver.ts'
import { attacks } from './attacks.ts'
import type { Targets } from './targets.ts'

const { available, reason } = (await isolatedBackend().probe?.()) ?? { available: true }
if (!available) console.warn(`The attacks are not made: ${reason}`)

/** Whoever may mount does so in a namespace of its own. */
const alone = process.getuid?.() === 0 ? ['unshare', '--mount', '--propagation', 'private'] : []

interface Report {
  readonly outcomes: Readonly<Record<string, { readonly walled: string; readonly open: string }>>
  readonly visits: number
  readonly isAlive: boolean
}

function makeAttacks(): Report {
  const [program, ...args] = [...alone, process.execPath, new URL('run.ts', import.meta.url).pathname]
  const env = { ...process.env, OPENRATH_ATTACK_KEY: `key-${process.pid}-of-the-host` }
  const { stdout, stderr } = spawnSync(program as string, args, { encoding: 'utf8', env })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) throw new Error(`the attacks were not made: ${stderr}`)
  return JSON.parse(last)
}

const report = available ? makeAttacks() : undefined

for (const { name, noControl } of attacks({} as Targets)) {
  test.runIf(available)(`no command can ${name}`, () => {
    expect(report?.outcomes[name]).toEqual({ walled: 'CLOSED', open: noControl ?? 'OPEN' })
  })
}

test.runIf(available)('nothing got through, and nothing outside was killed', () => {
  expect(report).toMatchObject({ visits: 0, isAlive: true })
})
