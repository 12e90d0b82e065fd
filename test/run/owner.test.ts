import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { isGone, newOwner } from '../../src/run/journal.ts'

const ownedBy = (pid: number) => newOwner().replace(`/${process.pid}/`, `/${pid}/`)

it.skipIf(process.platform !== 'linux')(
  'an owner that was killed is gone, also while its parent takes no notice',
  async () => {
    const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [said] = await once(parent.stdout, 'data')
    const pid = Number(said)
    expect(isGone(ownedBy(pid))).toBe(false)
    process.kill(pid, 'SIGKILL')
    await expect.poll(() => isGone(ownedBy(pid)), { timeout: 20_000 }).toBe(true)
  },
)
