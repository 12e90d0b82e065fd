import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import { SandboxRegistry } from '../../src/sandbox/registry.ts'
import { isRunning, out, temporaryFolder } from './make.ts'

const local = localBackend()

test('without a spec it works in a new folder, and closing removes it', async () => {
  using base = temporaryFolder()
  const backend = localBackend({ temporaryFolder: base.path })
  const [one, two] = [await backend.open(undefined), await backend.open(undefined)]
  expect(one.cwd).not.toBe(two.cwd)
  expect(one.cwd.startsWith(join(base.path, `openrath-${process.pid}-`))).toBe(true)
  await one.files.write('deep/file', 'x')
  await one.exec('chmod 500 deep').result
  await one.close()
  await two.close()
  expect([existsSync(one.cwd), existsSync(two.cwd)]).toEqual([false, false])
})

test('a folder that is given is made if it is missing, and stays', async () => {
  using base = temporaryFolder()
  const path = join(base.path, 'a/b')
  for (const spec of [path, { path }]) {
    await using sandbox = await local.open(spec)
    expect([sandbox.cwd, sandbox.hostPath]).toEqual([path, path])
    await sandbox.files.write('kept', 'yes')
  }
  expect(readFileSync(join(path, 'kept'), 'utf8')).toBe('yes')
})

test('a workspace behind a link is known by its real path, and both names lead into it', async () => {
  using base = temporaryFolder()
  mkdirSync(join(base.path, 'real'))
  symlinkSync('real', join(base.path, 'link'))
  await using sandbox = await local.open(join(base.path, 'link'))
  expect(sandbox.cwd).toBe(join(base.path, 'real'))
  await sandbox.files.write(join(base.path, 'link', 'a'), 'x')
  expect(out(await sandbox.exec('cat a').result)).toBe('x')
})

test('a spec that is wrong is refused with all that is wrong, and a file is no workspace', async () => {
  using base = temporaryFolder()
  const error = await local
    .open({ path: 7, env: { A: 1 }, passEnv: 'X', image: 'node' } as never)
    .catch(e => e)
  expect(error.code).toBe('invalid-argument')
  for (const name of ['path', 'env', 'passEnv', 'image']) expect(error.message).toContain(name)
  writeFileSync(join(base.path, 'file'), '')
  await expect(local.open(join(base.path, 'file'))).rejects.toMatchObject({ code: 'path-kind' })
  await expect(local.open(join(base.path, 'file/in'))).rejects.toMatchObject({ code: 'path-kind' })
})

test('commands get the harmless names, what the spec sets and what it asks for by name', async () => {
  const environment = {
    PATH: process.env.PATH,
    HOME: '/home/me',
    LC_ALL: 'C',
    OPENAI_API_KEY: 'sk-secret',
    GITHUB_TOKEN: 'ghp-secret',
    npm_config_token: 'secret',
    NODE_OPTIONS: '--no-warnings',
  }
  const spec = { env: { MODE: 'test', HOME: '/work' }, passEnv: ['GITHUB_TOKEN', 'ABSENT'] }
  await using sandbox = await localBackend({ environment }).open(spec)
  const names = (await sandbox.exec('env').result.then(out)).trim().split('\n').sort()
  const known = names.filter(line => !/^(PWD|OLDPWD|SHLVL|_|PATH|OPENRATH_SANDBOX)=/.test(line))
  expect(known).toEqual(['GITHUB_TOKEN=ghp-secret', 'HOME=/work', 'LC_ALL=C', 'MODE=test'])
})

test('it says that it is no wall', () => {
  expect(local.capabilities).toMatchObject({
    isolation: 'none',
    enforced: { paths: true, environment: true, fileRead: false, fileWrite: false, network: false },
  })
})

test('a process that left in every way ends when the sandbox closes', async () => {
  const sandbox = await local.open(undefined)
  const command = sandbox.exec(
    `env -i setsid /bin/sh -c 'echo $$ > one; exec sleep 1000' >/dev/null 2>&1 &
    setsid sh -c 'echo $$ > two; exec 3<&- ; exec sleep 1000' >/dev/null 2>&1 &
    until test -s one && test -s two; do sleep 0.01; done; echo up; sleep 1000`,
  )
  for await (const _ of command) break
  const pids = await Promise.all(['one', 'two'].map(async name => Number(await read(name))))
  expect(pids.map(isRunning)).toEqual([true, true])
  await sandbox.close()
  expect(pids.map(isRunning)).toEqual([false, false])
  await command.result

  async function read(name: string) {
    return new TextDecoder().decode(await sandbox.files.read(name))
  }
})

test('the end of one command leaves the processes of another alone', async () => {
  await using sandbox = await local.open(undefined)
  const other = sandbox.exec('setsid sleep 1000 & echo $!; wait')
  let pid = 0
  for await (const { data } of other) {
    pid = Number(new TextDecoder().decode(data))
    break
  }
  await sandbox.exec('sleep 1000 &').result
  await sandbox.exec('true').result
  expect(isRunning(pid)).toBe(true)
  other.kill()
  await other.result
  expect(isRunning(pid)).toBe(false)
})

test('a fork bomb ends with its timeout', async () => {
  await using sandbox = await local.open(undefined)
  const bomb =
    'spread() { test $1 -gt 0 && { spread $(($1-1)) & spread $(($1-1)) & }; sleep 1000; }; spread 6'
  const { timedOut } = await sandbox.exec(bomb, { timeout: 500 }).result
  expect(timedOut).toBe(true)
  const left = await sandbox.exec(`grep -l "${sandbox.id}.0;" /proc/[0-9]*/environ 2>/dev/null`).result
  expect(out(left)).toBe('')
})

test('a process that exits without closing its sandbox leaves no folder and no process behind', async () => {
  const module = new URL('../../src/sandbox/drivers/local/driver.ts', import.meta.url).pathname
  const program = `
    import { localBackend } from ${JSON.stringify(module)}
    const sandbox = await localBackend().open(undefined)
    const command = sandbox.exec('setsid sleep 1000 & echo $!; sleep 1000')
    for await (const { data } of command) { console.log(sandbox.cwd + ' ' + new TextDecoder().decode(data)); break }
    process.exit(0)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  })
  const [folder = '', pid] = stdout.trim().split(' ')
  expect(stderr).toBe('')
  expect(folder).toMatch(/openrath-/)
  expect(existsSync(folder)).toBe(false)
  // Nobody waited for it: it was killed in the last moment of the program.
  await expect.poll(() => isRunning(Number(pid))).toBe(false)
})

test('nothing keeps the program alive once commands have ended', () => {
  const module = new URL('../../src/sandbox/drivers/local/driver.ts', import.meta.url).pathname
  const program = `
    import { localBackend } from ${JSON.stringify(module)}
    const sandbox = await localBackend().open(undefined)
    await sandbox.exec('sleep 1000 &', { timeout: 60_000 }).result
    console.log(process.getActiveResourcesInfo().filter(name => name !== 'PipeWrap' && name !== 'TTYWrap').join())`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  })
  expect(stdout).toBe('\n')
})

test('a backend that is not known is refused with those that are', () => {
  const registry = new SandboxRegistry([{ ...local, name: 'mine' }])
  expect(registry.get('mine').name).toBe('mine')
  expect(registry.get('local').name).toBe('local')
  expect(() => registry.get('nowhere')).toThrow(
    /no sandbox backend "nowhere"; there are docker, isolated, local, mine, opensandbox/,
  )
  expect(() => new SandboxRegistry([local, local])).toThrow(/Two sandbox backends/)
})
