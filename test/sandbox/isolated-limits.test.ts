import { spawnSync } from 'node:child_process'
import { statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isolated, testHere } from './isolated-here.ts'
import { out } from './make.ts'

const megabyte = 2 ** 20

/** Processes of this machine whose command line holds a word. */
const withMark = (mark: string) =>
  spawnSync('sh', ['-c', `cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ac '[${mark[0]}]${mark.slice(1)}'`], {
    encoding: 'utf8',
  }).stdout.trim()

testHere('a fork bomb ends with its timeout, nothing of it is left, and the next command runs', async () => {
  await using sandbox = await isolated.open({ limits: { processes: 50 } })
  const mark = `bomb-of-${process.pid}`
  const bomb = `python3 - ${mark} <<'END'
import os
while True:
    try: os.fork()
    except OSError: pass
END`
  const { timedOut } = await sandbox.exec(bomb, { timeout: 1000 }).result
  expect(timedOut).toBe(true)
  expect(withMark(mark)).toBe('0')
  expect(out(await sandbox.exec('echo after').result)).toBe('after\n')
})

testHere('a command that kills everything kills itself at most', async () => {
  await using sandbox = await isolated.open(undefined)
  const other = sandbox.exec('echo up; read line; echo "$line"', { stdin: 'still here\n' })
  await sandbox.exec('kill -9 -1; kill -9 1').result
  expect(out(await other.result)).toBe('up\nstill here\n')
  expect(out(await sandbox.exec('echo after').result)).toBe('after\n')
})

const countsMemory = isolated.capabilities.enforced.memory
if (!countsMemory) console.warn('No cgroup can be made here: memory of several processes is not tested.')

const testCounted = countsMemory ? testHere : test.skip

testCounted('memory is counted for all processes of a sandbox together', async () => {
  await using sandbox = await isolated.open({ limits: { memory: 150 * megabyte } })
  // Each is within what one process may have.
  const script = `python3 - <<'END'
import os, signal
children = []
for _ in range(4):
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        block = bytearray(70_000_000)
        os.write(start, b'x')
        signal.pause()
    os.close(start)
    os.read(end, 1)
    children.append(child)
alive = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
for child in alive: os.kill(child, 9)
print(len(alive))
END`
  const { stdout } = await sandbox.exec(script, { timeout: 300_000 }).result
  expect(Number(new TextDecoder().decode(stdout))).toBeLessThan(3)
  expect(out(await sandbox.exec('echo after').result)).toBe('after\n')
})

testHere('shared memory and the temporary folder are no way around the limits', async () => {
  const limits = { memory: 64 * megabyte, fileSize: megabyte }
  await using sandbox = await isolated.open({ limits })
  const script = `i=0; while [ $i -lt 100 ] && head -c 1000000 /dev/zero > /dev/shm/$i; do i=$((i+1)); done; echo $i`
  const { stdout, exitCode } = await sandbox.exec(script).result
  expect(exitCode === 0 ? Number(new TextDecoder().decode(stdout)) : 0).toBeLessThan(64)
  expect((await sandbox.exec('head -c 5000000 /dev/zero > /tmp/big').result).exitCode).not.toBe(0)
  await sandbox.exec('head -c 5000000 /dev/zero > big').result
  expect(statSync(join(sandbox.hostPath ?? '', 'big')).size).toBeLessThanOrEqual(megabyte)
})

testHere('a process that computes without end is ended', async () => {
  await using sandbox = await isolated.open({ limits: { cpuSeconds: 1 } })
  const { exitCode, timedOut } = await sandbox.exec('while :; do :; done', { timeout: 300_000 }).result
  expect(timedOut).toBe(false)
  expect(exitCode).not.toBe(0)
})

testHere(
  'a command that fills the disk is ended while some of it is left, and the next one runs',
  async () => {
    const { bavail, bsize } = statfsSync(tmpdir())
    // More than other tests take or give back meanwhile. The space is reserved and not written.
    const diskFree = bavail * bsize - 1000 * megabyte
    await using sandbox = await isolated.open({ limits: { diskFree, fileSize: 60 * megabyte } })
    const grow = 'fallocate -l 50000000 $i || head -c 50000000 /dev/zero > $i'
    const fill = `i=0; while :; do i=$((i+1)); ${grow}; sleep 0.05; done`
    const { timedOut, exitCode, stderr } = await sandbox.exec(fill, { timeout: 300_000 }).result
    expect({ timedOut, exitCode }).toEqual({ timedOut: false, exitCode: 137 })
    expect(new TextDecoder().decode(stderr)).toContain('the disk was almost full')
    expect(out(await sandbox.exec('rm *; echo after').result)).toBe('after\n')
  },
)
