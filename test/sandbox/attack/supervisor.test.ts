import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isolated, testAsRoot, testHere } from '../isolated-here.ts'
import { isRunning, out, temporaryFolder } from '../make.ts'

/** Attacks on the shell that starts commands: it is outside the walls, and serves one command after another. */

const isCounted = isolated.capabilities.enforced.memory
if (!isCounted) console.warn('No cgroup can be made here: what one counts is not attacked.')
const testCounted = isCounted ? testHere : test.skip

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** Shells of this process, or of another, that wait for commands. */
function supervisorsOf(pid: number = process.pid): number[] {
  const tasks = readdirSync(`/proc/${pid}/task`)
  const children = tasks.flatMap(task => {
    const list = readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').trim()
    return list === '' ? [] : list.split(' ').map(Number)
  })
  return children.filter(child =>
    /^\/bin\/sh\0$/.test(or('', () => readFileSync(`/proc/${child}/cmdline`, 'latin1'))),
  )
}

function or<T>(otherwise: T, look: () => T): T {
  try {
    return look()
  } catch {
    return otherwise
  }
}

testHere(
  'a command has no open file but its own three streams, nor does any process that it sees',
  async () => {
    await using sandbox = await isolated.open(undefined)
    const look = `for fd in /proc/[0-9]*/fd/*; do echo "$fd $(readlink "$fd")"; done`
    const script = `python3 - <<'END'
import os
for pid in filter(str.isdigit, os.listdir('/proc')):
    for fd in os.listdir(f'/proc/{pid}/fd'):
        try: print(pid, fd, os.readlink(f'/proc/{pid}/fd/{fd}'))
        except OSError: pass
END`
    const lines = (out(await sandbox.exec(script).result) + out(await sandbox.exec(look).result))
      .trim()
      .split('\n')
    const leads = lines.map(line => line.split(' ').slice(2).join(' ') || (line.split(' ')[1] ?? ''))
    expect(leads.filter(lead => /socket:/.test(lead))).toEqual([])
    const named = leads.filter(lead => lead.startsWith('/') && !/^\/(dev|proc|tmp\/home)\b/.test(lead))
    // Its own output. The pipe that its options came through was read to the end before there was a process inside.
    expect(named.every(lead => /\/pipes-\d+\/(out|err)\d+$/.test(lead))).toBe(true)
  },
)

testHere('a command cannot say how it ended, whatever it writes into whatever it can open', async () => {
  using base = temporaryFolder()
  await using sandbox = await isolated.open(join(base.path, 'work'))
  const marker = join(base.path, 'fed')
  const script = `python3 - <<'END'
import os
said = b'\\nready\\nended 0\\n{ "exit-code": 0 }\\n{ "child-pid": 1 }\\n\\ntouch ${marker}\\n'
for _ in range(50):
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try: fds = os.listdir(f'/proc/{pid}/fd')
        except OSError: continue
        for fd in fds:
            for how in (os.O_WRONLY, os.O_RDWR):
                try:
                    found = os.open(f'/proc/{pid}/fd/{fd}', how | os.O_NONBLOCK)
                    os.write(found, said)
                    os.close(found)
                except OSError: pass
for fd in range(0, 300):
    try: os.write(fd, said)
    except OSError: pass
os._exit(7)
END`
  for (let turn = 0; turn < 3; turn++) {
    const { exitCode } = await sandbox.exec(`exec ${script}`, { stdin: 'given' }).result
    expect(exitCode).toBe(7)
  }
  expect(out(await sandbox.exec('echo after').result)).toBe('after\n')
  expect(existsSync(marker)).toBe(false)
})

testHere('a command cannot keep its own end from being seen by reading what it can open', async () => {
  await using sandbox = await isolated.open(undefined)
  // From the first moment, while process number 1 may still have what it started with.
  const script = `
    for fd in /proc/1/fd/* /proc/self/fd/*; do (exec 2>/dev/null; timeout 2 cat < "$fd" > /dev/null) & done
    exit 9`
  for (let turn = 0; turn < 20; turn++) expect((await sandbox.exec(script).result).exitCode).toBe(9)
})

testHere('what a command leaves behind has ended when its result is there', async () => {
  await using sandbox = await isolated.open(undefined)
  const mark = `31536000.${process.pid}`
  const count = 150
  // None of them holds a stream of the command, so that nothing but their end can be waited for.
  const script = `i=0; while [ $i -lt ${count} ]; do setsid sleep ${mark} </dev/null >/dev/null 2>&1 & i=$((i+1)); done; exit 3`
  for (let turn = 0; turn < 5; turn++) {
    const { exitCode } = await sandbox.exec(script).result
    // The newest first, before they have the time to end by themselves.
    const left = readdirSync('/proc')
      .reverse()
      .filter(pid =>
        or('', () => readFileSync(`/proc/${pid}/cmdline`, 'latin1')).startsWith(`sleep\0${mark}\0`),
      )
    expect([exitCode, left]).toEqual([3, []])
  }
})

testHere('a command cannot read or add to what the next one prints', async () => {
  await using sandbox = await isolated.open(undefined)
  const thief = `setsid sh -c 'while :; do cat /proc/self/fd/3 >> /tmp/stolen; echo forged >&3; done' 3<>/proc/self/fd/1 >/dev/null 2>&1 &
    mkdir -p /tmp/kept; ln /proc/self/fd/1 /tmp/kept/pipe 2>/dev/null; ln -L /proc/self/fd/1 ./pipe 2>/dev/null; echo mine > /proc/self/fd/1; exit 0`
  for (let turn = 0; turn < 10; turn++) {
    await sandbox.exec(thief).result
    const { stdout } = await sandbox.exec('echo secret-of-the-next; find /tmp/kept . -type p').result
    expect(text(stdout)).toBe('secret-of-the-next\n')
  }
  expect(out(await sandbox.exec('cat /tmp/stolen 2>/dev/null || :').result)).not.toContain('secret')
})

testHere('no word of a command is read by the shell that starts it', async () => {
  using base = temporaryFolder()
  const marker = join(base.path, 'fed')
  await using sandbox = await isolated.open(join(base.path, 'work'))
  const evil = [
    `'; touch ${marker}; '`,
    `$(touch ${marker})`,
    `\`touch ${marker}\``,
    `\ntouch ${marker}\n`,
    `' | touch ${marker} #`,
    '%s%n\\0\\c',
    "''\\''",
    '',
    '-n',
    '\\',
    '!!',
    '\u{1F600}\u0001\u007f',
  ]
  const print = [
    'python3',
    '-c',
    'import sys, os; sys.stdout.write("\\0".join(sys.argv[1:]) + os.environ["E"])',
  ]
  const words = fc.array(fc.oneof(fc.constantFrom(...evil), fc.string({ unit: 'binary' })), { maxLength: 6 })
  const clean = (word: string) => word.replaceAll('\0', '').toWellFormed()
  await fc.assert(
    fc.asyncProperty(words, fc.constantFrom(...evil), async (given, value) => {
      const args = given.map(clean)
      const { stdout } = await sandbox.exec([...print, ...args], { env: { E: value } }).result
      expect(text(stdout)).toBe(args.join('\0') + value)
    }),
    { numRuns: 15 },
  )
  for (const name of evil.filter(word => word !== '' && !word.includes('/'))) {
    await sandbox.files.write(join(name, 'file'), '')
    expect(out(await sandbox.exec(['ls'], { cwd: name }).result)).toBe('file\n')
  }
  expect(existsSync(marker)).toBe(false)
})

testHere(
  'every command has process numbers of its own, and finds no shell, no group and no mount outside',
  async () => {
    await using sandbox = await isolated.open(undefined)
    const script = `python3 - <<'END'
import os
print(sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit())[0], os.getppid() < 10)
print(open('/proc/1/status').read().split('PPid:')[1].split()[0])
print(open('/proc/self/cgroup').read().count('openrath'))
print(os.path.exists('/sys/fs/cgroup'), os.path.exists('/proc/1/root/sys/fs/cgroup'))
END`
    for (let turn = 0; turn < 2; turn++) {
      expect(out(await sandbox.exec(script).result)).toBe('1 True\n0\n0\nFalse False\n')
    }
    const ids = await Promise.all(
      [1, 2].map(() => sandbox.exec('readlink /proc/self/ns/pid; sleep 0.1').result),
    )
    expect(new Set(ids.map(out)).size).toBe(2)
  },
)

testCounted('commands of one sandbox are counted together, with the shell that starts them', async () => {
  await using sandbox = await isolated.open(undefined)
  const mark = `1000.${process.pid}`
  const commands = [1, 2, 3].map(() => sandbox.exec(`echo up; exec sleep ${mark}`))
  const sleeping = () =>
    readdirSync('/proc').filter(pid =>
      or('', () => readFileSync(`/proc/${pid}/cmdline`, 'latin1')).startsWith(`sleep\0${mark}\0`),
    )
  while (sleeping().length < 3) await new Promise(resolve => setImmediate(resolve))
  const groups = [...supervisorsOf(), ...sleeping()].map(pid => readFileSync(`/proc/${pid}/cgroup`, 'latin1'))
  expect(groups.length).toBeGreaterThanOrEqual(6)
  expect(new Set(groups).size).toBe(1)
  expect(groups[0]).toContain(`/openrath-${process.pid}-`)
  for (const command of commands) command.kill()
  await Promise.all(commands.map(command => command.result))
})

testHere(
  'a shell that is killed ends its command and no other, and the next command has another one',
  async () => {
    await using sandbox = await isolated.open(undefined)
    const others = new Set(supervisorsOf())
    const other = sandbox.exec(
      'echo up; read line; echo "$line"; while [ ! -e end ]; do sleep 0.01; done; exit 5',
      {
        stdin: 'still here\n',
      },
    )
    for await (const _ of other) break
    const mine = sandbox.exec('echo up > up; exec sleep 1000')
    while (!(await sandbox.files.stat('up'))) await new Promise(resolve => setImmediate(resolve))
    const [shell] = supervisorsOf().filter(pid => !others.has(pid))
    process.kill(shell as number, 'SIGKILL')
    await expect(mine.result).rejects.toMatchObject({ code: 'sandbox-failed' })
    expect(out(await sandbox.exec('echo after').result)).toBe('after\n')
    await sandbox.files.write('end', '')
    expect(await other.result).toMatchObject({ exitCode: 5 })
  },
)

testHere(
  'a command that takes every process there is keeps others from starting, and ends none',
  async () => {
    await using sandbox = await isolated.open({ limits: { processes: 30 } })
    const hog = sandbox.exec(`python3 - <<'END'
import os, signal, time
while True:
    try:
        if os.fork() == 0: signal.pause()
    except OSError: break
open('full', 'w').close()
while not os.path.exists('end'): time.sleep(0.01)
os._exit(5)
END`)
    while (!(await sandbox.files.stat('full'))) await new Promise(resolve => setImmediate(resolve))
    const late = await sandbox.exec('echo ran').result.catch(error => error.code)
    expect(late === 'sandbox-failed' || late.exitCode !== undefined).toBe(true)
    await sandbox.files.write('end', '')
    expect(await hog.result).toMatchObject({ exitCode: 5 })
    expect(out(await sandbox.exec('echo after').result)).toBe('after\n')
  },
)

testHere('shells end with a program that is killed, whether a command runs or not', async () => {
  const module = new URL('../../../src/sandbox/drivers/isolated/driver.ts', import.meta.url).pathname
  for (const command of ['', 'echo up > up; sleep 1000']) {
    using base = temporaryFolder()
    const program = `
      import { isolatedBackend } from ${JSON.stringify(module)}
      const sandbox = await isolatedBackend().open(${JSON.stringify(join(base.path, 'work'))})
      if (${JSON.stringify(command)}) sandbox.exec(${JSON.stringify(command)})
      console.log('open')
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    while (command && !existsSync(join(base.path, 'work/up')))
      await new Promise(resolve => setImmediate(resolve))
    const shells = supervisorsOf(child.pid)
    expect(shells.length).toBeGreaterThan(0)
    child.kill('SIGKILL')
    await once(child, 'exit')
    while (shells.some(isRunning)) await new Promise(resolve => setImmediate(resolve))
  }
})

testHere('a workspace that was replaced by another of its name is seen by the next command', async () => {
  using base = temporaryFolder()
  const work = join(base.path, 'work')
  mkdirSync(work)
  writeFileSync(join(work, 'which'), 'old')
  await using sandbox = await isolated.open(work)
  expect(out(await sandbox.exec(['cat', 'which']).result)).toBe('old')
  renameSync(work, join(base.path, 'aside'))
  mkdirSync(join(work, '.openrath'), { recursive: true })
  writeFileSync(join(work, 'which'), 'new')
  expect(out(await sandbox.exec('cat which; echo more > made').result)).toBe('new')
  expect([existsSync(join(work, 'made')), existsSync(join(base.path, 'aside/made'))]).toEqual([true, false])
})

testAsRoot('the shell is nobody: neither root, nor with any right of root', async () => {
  await using sandbox = await isolated.open(undefined)
  const command = sandbox.exec('echo up; sleep 1000')
  for await (const _ of command) break
  const status = supervisorsOf().map(pid => readFileSync(`/proc/${pid}/status`, 'latin1'))
  expect(status.length).toBeGreaterThan(0)
  for (const each of status) {
    expect(Number(/^Uid:\s+(\d+)/m.exec(each)?.[1])).toBeGreaterThan(2_000_000_000)
    expect(/^CapEff:\s+(\S+)/m.exec(each)?.[1]).toMatch(/^0+$/)
    expect(/^CapPrm:\s+(\S+)/m.exec(each)?.[1]).toMatch(/^0+$/)
  }
  command.kill()
  await command.result
})
