import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isolatedBackend } from '../../src/sandbox/drivers/isolated/driver.ts'
import { isolated, testAsRoot, testHere } from './isolated-here.ts'
import { isRunning, out, temporaryFolder } from './make.ts'

const isRoot = process.getuid?.() === 0
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

test('a spec that is wrong is refused with all that is wrong', async () => {
  const spec = {
    path: 7,
    env: { 'A=B': 'x' },
    passEnv: 'X',
    network: { allow: ['https://example.com', 'fine.example', 5] },
    limits: { memory: 1.5, disk: 3 },
    read: ['etc', '/'],
    image: 'node',
  }
  const error = await isolated.open(spec as never).catch(e => e)
  expect(error.code).toBe('invalid-argument')
  for (const name of ['path', 'env', 'passEnv', 'allow[0]', 'allow[2]', 'memory', 'disk', 'read', 'image']) {
    expect(error.message).toContain(name)
  }
  expect(error.message).not.toContain('allow[1]')
})

test('where programs are missing it refuses, and says how to install them', async () => {
  const bare = isolatedBackend({ programPath: ['/nowhere'] })
  expect(await bare.probe?.()).toMatchObject({
    available: false,
    reason: expect.stringMatching(/bwrap.*apt-get install bubblewrap/),
  })
  await expect(bare.open(undefined)).rejects.toMatchObject({ code: 'sandbox-unavailable' })
})

testHere('a wall that cannot be made is a refusal, and leaves nothing behind', async () => {
  using base = temporaryFolder()
  const fake = join(base.path, 'bin')
  mkdirSync(fake)
  for (const name of ['prlimit', 'unshare', 'setpriv', 'perl']) {
    const real = ['/usr/bin', '/bin'].map(at => join(at, name)).find(existsSync) as string
    writeFileSync(join(fake, name), `#!/bin/sh\nexec ${real} "$@"\n`, { mode: 0o755 })
  }
  const say = 'bwrap: No permissions to create new namespace'
  writeFileSync(join(fake, 'bwrap'), `#!/bin/sh\necho '${say}' >&2; exit 1\n`, { mode: 0o755 })
  spawnSync('chmod', ['755', base.path])
  const error = await isolatedBackend({ programPath: [fake] })
    .open(join(base.path, 'work'))
    .catch(e => e)
  expect(error.code).toBe('sandbox-unavailable')
  expect(error.message).toMatch(/No permissions to create new namespace.*sysctl/)
})

testHere('folders of the system are no workspaces', async () => {
  for (const path of ['/', '/usr/share', '/etc', tmpdir()]) {
    await expect(isolated.open(path)).rejects.toMatchObject({ code: 'invalid-argument' })
  }
})

testHere('commands get the harmless names, what the spec sets and what it asks for by name', async () => {
  const environment = { PATH: '/mine', HOME: '/home/me', LC_ALL: 'C', KEY: 'sk-secret', TOKEN: 'passed' }
  const spec = { env: { MODE: 'test' }, passEnv: ['TOKEN'] }
  await using sandbox = await isolatedBackend({ environment }).open(spec)
  const lines = out(await sandbox.exec(['env']).result)
    .trim()
    .split('\n')
  expect(lines.filter(line => !/^(PWD|OLDPWD|SHLVL|_|PATH)=/.test(line)).sort()).toEqual([
    'HOME=/tmp/home',
    'LC_ALL=C',
    'MODE=test',
    'SHELL=/bin/sh',
    'TMPDIR=/tmp',
    'TOKEN=passed',
    'USER=agent',
  ])
})

testHere('values of the environment are not on a command line that others can read', async () => {
  await using sandbox = await isolated.open({ env: { SECRET: 'a-value-nobody-sees' } })
  const command = sandbox.exec(`: seen-by-${process.pid}; echo up; sleep 1000`)
  for await (const _ of command) break
  const isSeen = (word: string) =>
    outside(`cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ac '[${word[0]}]${word.slice(1)}'`) !== '0\n'
  expect([isSeen(`seen-by-${process.pid}`), isSeen('a-value-nobody-sees')]).toEqual([true, false])
  command.kill()
  await command.result
})

testHere('what commands and file calls make belongs to the owner of the folder', async () => {
  using base = temporaryFolder()
  const owners = isRoot ? [0, 12345] : [process.getuid?.() as number]
  for (const owner of owners) {
    const path = join(base.path, `of-${owner}`)
    mkdirSync(path)
    writeFileSync(join(path, 'before'), 'old')
    if (isRoot) for (const at of [path, join(path, 'before')]) chownSync(at, owner, owner)
    await using sandbox = await isolated.open(path)
    await sandbox.files.write('deep/file', 'by a file call')
    await sandbox.exec('echo new > before; echo x >> deep/file; mkdir made; echo y > made/file').result
    for (const name of ['before', 'deep', 'deep/file', 'made', 'made/file']) {
      expect([name, statSync(join(path, name)).uid]).toEqual([name, owner])
    }
    expect(text(await sandbox.files.read('before'))).toBe('new\n')
    expect(text(await sandbox.files.read('deep/file'))).toBe('by a file callx\n')
  }
})

testAsRoot('as root, commands run as a user that nobody is, each sandbox as another', async () => {
  const uids = []
  for (let i = 0; i < 2; i++) {
    await using sandbox = await isolated.open(undefined)
    const command = sandbox.exec(`echo up > up; exec sleep 1000.${process.pid}`)
    while (!(await sandbox.files.stat('up'))) await new Promise(resolve => setImmediate(resolve))
    const pid = Number(outside(`pgrep -n -f 'sleep 1000[.]${process.pid}$'`))
    uids.push(statSync(`/proc/${pid}`).uid)
    command.kill()
    await command.result
  }
  expect(uids.every(uid => uid > 2_000_000_000)).toBe(true)
  expect(new Set(uids).size).toBe(2)
})

testHere('a temporary folder is kept between commands, is not the one of the machine, and goes', async () => {
  const sandbox = await isolated.open(undefined)
  await sandbox.exec('echo kept > /tmp/openrath-kept').result
  expect(out(await sandbox.exec('cat /tmp/openrath-kept').result)).toBe('kept\n')
  expect(existsSync('/tmp/openrath-kept')).toBe(false)
  await sandbox.close()
})

testHere(
  'the record of the runtime is no part of the workspace, for commands and for file calls',
  async () => {
    using base = temporaryFolder()
    mkdirSync(join(base.path, '.openrath'))
    writeFileSync(join(base.path, '.openrath/record'), 'what happened')
    await using sandbox = await isolated.open(base.path)
    expect(
      out(await sandbox.exec('ls -A .openrath; rm -rf .openrath; echo x > .openrath/record').result),
    ).toBe('')
    const { files } = sandbox
    for (const path of ['.openrath', '.openrath/record', './a/../.openrath/record']) {
      await expect(files.read(path)).rejects.toMatchObject({ code: 'path-outside' })
      await expect(files.write(path, 'x')).rejects.toMatchObject({ code: 'path-outside' })
      await expect(files.remove(path, { recursive: true })).rejects.toMatchObject({ code: 'path-outside' })
      await expect(files.rename(path, 'x')).rejects.toMatchObject({ code: 'path-outside' })
    }
    await sandbox.exec('ln -s .openrath link').result
    await expect(files.read('link/record')).rejects.toMatchObject({ code: 'path-outside' })
    expect((await files.list('.')).map(({ name }) => name)).toEqual(['link'])
    expect((await files.search({ text: 'happened' })).matches).toEqual([])
    expect(readFileSync(join(base.path, '.openrath/record'), 'utf8')).toBe('what happened')
  },
)

testHere('paths that the spec names can be read, and not written', async () => {
  using base = temporaryFolder()
  const [shared, work] = [join(base.path, 'shared'), join(base.path, 'work')]
  mkdirSync(shared)
  writeFileSync(join(shared, 'data'), 'for all')
  await using sandbox = await isolated.open({ path: work, read: [shared] })
  expect(out(await sandbox.exec(['cat', join(shared, 'data')]).result)).toBe('for all')
  expect((await sandbox.exec(`echo x > '${shared}/data'`).result).exitCode).not.toBe(0)
  expect(readFileSync(join(shared, 'data'), 'utf8')).toBe('for all')
})

testHere('the Node of this process runs code inside', async () => {
  await using sandbox = await isolated.open(undefined)
  await sandbox.files.write('a.ts', 'const version: string = process.version; console.log(version)')
  const [node = ''] = sandbox.interpreters?.typescript ?? []
  expect(out(await sandbox.exec([node, 'a.ts']).result)).toBe(`${process.version}\n`)
})

testHere('a folder of a branch is worked in instead of the one of the spec', async () => {
  using base = temporaryFolder()
  const [main, branch] = [join(base.path, 'main'), join(base.path, 'branch')]
  for (const path of [main, branch]) mkdirSync(path)
  await using sandbox = (await isolated.openIn?.(
    { path: branch },
    { path: main, env: { A: 'b' } },
  )) as never as Awaited<ReturnType<typeof isolated.open>>
  await sandbox.exec('echo "$A" > file').result
  expect(text(await sandbox.files.read('file'))).toBe('b\n')
  expect([existsSync(join(main, 'file')), existsSync(join(branch, 'file'))]).toEqual([false, true])
})

testHere('a program that is killed takes its commands with it', async () => {
  const module = new URL('../../src/sandbox/drivers/isolated/driver.ts', import.meta.url).pathname
  const mark = `orphan-of-${process.pid}`
  const program = `
    import { isolatedBackend } from ${JSON.stringify(module)}
    const sandbox = await isolatedBackend().open(undefined)
    const command = sandbox.exec("setsid sh -c 'echo up; while :; do sleep 1000; done # ${mark}' & wait")
    for await (const _ of command) { console.log(sandbox.hostPath); break }
    await command.result`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const pids = outside(`pgrep -f '[o]${mark.slice(1)}'`)
    .trim()
    .split('\n')
    .map(Number)
    .filter(pid => pid !== child.pid)
  expect(pids.length).toBeGreaterThan(0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  while (pids.some(isRunning)) await new Promise(resolve => setImmediate(resolve))
  // Nothing could clean up; the number of the process says whose the folders are.
  spawnSync('sh', ['-c', `rm -rf '${tmpdir()}'/openrath-${child.pid}-*`])
  outside(`find /sys/fs/cgroup -depth -type d -name 'openrath-${child.pid}-*' -exec rmdir {} ';' 2>/dev/null`)
})

testHere('a program that exits leaves no folder, no group and no process behind', () => {
  const module = new URL('../../src/sandbox/drivers/isolated/driver.ts', import.meta.url).pathname
  const program = `
    import { isolatedBackend } from ${JSON.stringify(module)}
    const sandbox = await isolatedBackend().open({ network: { allow: ['example.com'] } })
    console.log(process.pid)
    if (process.argv[1] === 'exit') {
      for await (const _ of sandbox.exec('echo up; sleep 1000')) process.exit(0)
    }`
  for (const how of ['exit', 'end']) {
    const args = ['--input-type=module', '--eval', program, how]
    const { stdout, stderr, status } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      timeout: 300_000,
    })
    expect([stderr, status]).toEqual(['', 0])
    const places = `'${tmpdir()}'/ /sys/fs/cgroup -maxdepth 6`
    expect(outside(`find ${places} -name 'openrath-${stdout.trim()}-*' 2>/dev/null`)).toBe('')
  }
})

testHere('open files that this process inherited are not passed on', () => {
  const module = new URL('../../src/sandbox/drivers/isolated/driver.ts', import.meta.url).pathname
  const program = `
    import { isolatedBackend } from ${JSON.stringify(module)}
    await using sandbox = await isolatedBackend().open(undefined)
    const { stdout } = await sandbox.exec('ls -l /proc/self/fd').result
    console.log(new TextDecoder().decode(stdout))`
  const args = ['-c', 'exec "$0" --input-type=module --eval "$1" 200</etc', process.execPath, program]
  const { stdout } = spawnSync('bash', args, { encoding: 'utf8' })
  expect(stdout).toMatch(/ 200 -> \/dev\/null/)
  expect(stdout).not.toMatch(/-> \/etc\n/)
})

/** What a script prints outside. */
const outside = (script: string) => spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout
