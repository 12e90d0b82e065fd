import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isolatedBackend } from '../../../src/sandbox/drivers/isolated/driver.ts'
import { localBackend } from '../../../src/sandbox/drivers/local/driver.ts'
import type { Sandbox } from '../../../src/sandbox/spec.ts'
import { temporaryFolder } from '../make.ts'
import { attacks } from './attacks.ts'
import { makeTargets } from './targets.ts'

/** Started by attack.test.ts in a mount namespace of its own, since one of the attacks is to mount. Prints what came of each. */
using base = temporaryFolder()
await using targets = await makeTargets(base.path)
const workspace = (name: string) => {
  const path = join(base.path, name)
  mkdirSync(join(path, '.openrath'), { recursive: true })
  writeFileSync(join(path, '.openrath/record'), 'what happened')
  return path
}
const limits = { memory: 150 * 2 ** 20, processes: 64, fileSize: 1_000_000 }
await using walled = await isolatedBackend().open({ path: workspace('walled'), limits })
await using open = await localBackend().open(workspace('open'))
const outcomes: Record<string, { walled: string; open: string }> = {}
const visitsBefore = targets.visits()
const list = attacks(targets)
for (const { name, script } of list) outcomes[name] = { walled: await outcome(walled, script), open: '' }
const visits = targets.visits() - visitsBefore
const isAlive = targets.isVictimAlive()
for (const { name, script, noControl } of list) {
  const found = outcomes[name]
  if (found) found.open = noControl ?? (await outcome(open, script))
}
console.log(JSON.stringify({ outcomes, visits, isAlive }))

async function outcome(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.exec(script, { timeout: 120_000 }).result
  const text = new TextDecoder()
  return /\b(OPEN|CLOSED)\b/.exec(text.decode(stdout))?.[0] ?? `exit ${exitCode}: ${text.decode(stderr)}`
}
