import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { markOf, thisMark, thisProcess } from '../../src/base/process.ts'
import { isGone, newOwner } from '../../src/run/journal.ts'

/** The owner that such a process would be, as long as it is there. */
function ownedBy(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] as string
  return newOwner().replace(thisMark(), markOf({ ...thisProcess(), pid, start }))
}

it.skipIf(process.platform !== 'linux')(
  'an owner that was killed is gone, also while its parent takes no notice',
  async () => {
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [said] = await once(parent.stdout, 'data')
    const pid = Number(said)
    const owner = ownedBy(pid)
    expect(isGone(owner)).toBe(false)
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => isGone(owner)).toBe(true)
  },
)

it('an owner whose number another process has by now is gone, and one of another machine is not known to be', () => {
  const before = markOf({ ...thisProcess(), start: 'earlier' })
  const elsewhere = markOf({ ...thisProcess(), machine: 'elsewhere' })
  const others = [before, elsewhere].map(mark => newOwner().replace(thisMark(), mark))
  expect([newOwner(), ...others, 'host/an/older/owner'].map(isGone)).toEqual([false, true, false, false])
})
