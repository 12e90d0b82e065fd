import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

interface Ended {
  readonly exitCode: number
  readonly out: string
  readonly error: string
}

/** As a user who can make no cgroup: nobody, where these tests run as root. */
function run(...programs: string[]): { readonly why?: string; readonly ends: readonly Ended[] } {
  const become =
    process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  const [first = '', ...rest] = [
    ...become,
    process.execPath,
    join(import.meta.dirname, 'memory-child.ts'),
    ...programs,
  ]
  const { stdout, stderr } = spawnSync(first, rest, {
    cwd: '/',
    env: { PATH: process.env.PATH, HOME: tmpdir() },
    encoding: 'utf8',
  })
  if (!stdout) return { why: `the program could not be run: ${stderr}`, ends: [] }
  const { available, reason, counted, ends } = JSON.parse(stdout.trim().split('\n').at(-1) as string)
  const why = !available ? reason : counted ? 'a cgroup counts memory for this user' : undefined
  return { ...(why && { why }), ends }
}

const { why } = run()
if (why) console.warn(`Memory without a cgroup is not tested: ${why}`)
const testWatched = test.skipIf(why !== undefined)

const steps = `
import mmap, time
blocks = []
for i in range(1, 60):
    block = mmap.mmap(-1, 16_000_000)
    for at in range(0, 16_000_000, 4096): block[at] = 1
    blocks.append(block)
    print(i * 16, flush=True)
    time.sleep(0.05 if i < 16 else 1)
`

/** Does not let itself be looked at. */
const secretive = `
import ctypes
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
${steps}`

const family = `
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(60_000_000)
        time.sleep(30)
        os._exit(0)
time.sleep(30)
print('all of them')
`

const sharing = `
import mmap, os, time
block = mmap.mmap(-1, 150_000_000)
for at in range(0, 150_000_000, 4096): block[at] = 1
for _ in range(6):
    if os.fork() == 0:
        sum(block[at] for at in range(0, 150_000_000, 4096))
        time.sleep(1)
        os._exit(0)
for _ in range(6): os.wait()
print('fine')
`

const folder = `
import mmap, time
with open('/dev/shm/a', 'w+b') as file:
    file.truncate(120_000_000)
    block = mmap.mmap(file.fileno(), 120_000_000)
    other = mmap.mmap(file.fileno(), 120_000_000)
    for at in range(0, 120_000_000, 4096): block[at] = 1; other[at]
    own = bytearray(50_000_000)
    time.sleep(0.5)
print('fine')
`

const hidden = `
import ctypes, os
try: os.memfd_create('x')
except OSError as error: print(error.errno)
libc = ctypes.CDLL(None, use_errno=True)
libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
for size in (4096, 4097, 2 ** 32 + 1): print(libc.shmget(0, size, 0o1600) >= 0)
`

const tooMuch = 'The command was ended: the sandbox used more than 256 MB of memory.'

testWatched(
  'without a cgroup, shared memory and many small processes are no way around the limit of a sandbox',
  () => {
    const [shared, unseen, several, after] = run(steps, secretive, family, 'print("after")').ends
    expect(shared).toMatchObject({ exitCode: 137, error: tooMuch })
    // Beyond the limit each step waits much longer than a look takes, and a busy machine is late by a few of them.
    expect(Number(shared?.out.split('\n').at(-1))).toBeLessThan(600)
    expect(unseen).toMatchObject({ exitCode: 137, error: tooMuch })
    expect(several).toMatchObject({ exitCode: 137, out: '', error: tooMuch })
    expect(after).toMatchObject({ exitCode: 0, out: 'after' })
  },
)

testWatched(
  'without a cgroup, memory that processes share counts once, and there is none that lies in no process',
  () => {
    const [...ends] = run(sharing, folder, hidden).ends
    const refused = ends.pop()
    expect(ends).toEqual(Array(2).fill({ exitCode: 0, out: 'fine', error: '' }))
    expect(refused?.out.split('\n')).toEqual(['38', 'True', 'False', 'False'])
  },
)
