import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { dockerBackend } from '../../src/sandbox/drivers/docker/driver.ts'
import { leftovers } from '../../src/sandbox/drivers/docker/leftovers.ts'
import type { Sandbox, SandboxBackend, SandboxSpec } from '../../src/sandbox/spec.ts'
import { testSandbox } from '../../src/testing/sandbox.ts'
import { out, temporaryFolder } from './make.ts'
import { type Engine, startPodman } from './stand-in/podman.ts'

let started: Engine | string = 'not started'
let docker: SandboxBackend = dockerBackend()

beforeAll(async () => {
  started = await startPodman()
  if (typeof started === 'string') return
  docker = dockerBackend({ socket: started.socket, image: started.image })
})

afterAll(async () => {
  if (typeof started === 'string') return
  // Whatever a failing test has left, so that nothing stays mounted.
  for (const { Id } of await started.docker.listContainers({ all: true })) {
    await started.docker.getContainer(Id).remove({ force: true })
  }
  await started[Symbol.asyncDispose]()
})

/** The engine; a test without one is skipped and says why. */
function engine({ skip }: TestContext): Engine {
  if (typeof started === 'string') return skip(started)
  return started
}

async function open(spec: Extract<SandboxSpec, object>, context: TestContext): Promise<Sandbox> {
  const { image } = engine(context)
  return docker.open({ image, ...spec })
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe.concurrent('conformance', () => {
  const opened: SandboxBackend = { ...docker, open: (...args) => docker.open(...args) }
  // Whether processes are gone is asked of a `ps` that knows the question.
  for (const image of ['busybox', 'image'] as const) {
    const spec = () => (started as Engine)[image]
    for (const { name, run } of testSandbox(opened, { spec })) {
      if (name.includes(' ends with ') === (image === 'busybox')) continue
      test(name, async context => {
        engine(context)
        await run()
      })
    }
  }
})

test('a container has no network unless it is asked for, and says which', async context => {
  await using alone = await open({}, context)
  await using joined = await open({ network: 'bridge' }, context)
  expect([alone, joined].map(({ capabilities }) => capabilities.enforced.network)).toEqual([true, false])
  const links = async (sandbox: Sandbox) => out(await sandbox.exec('ls /sys/class/net').result).split(/\s+/)
  expect(await links(alone)).not.toContain('eth0')
  expect(await links(joined)).toContain('eth0')
  await expect(alone.expose?.(80)).rejects.toMatchObject({ code: 'sandbox-unsupported' })
  expect(await joined.expose?.(80)).toMatch(/^http:\/\/[\d.]+:80$/)
})

test('memory and processes are limited, and the sandbox outlives what hits the limits', async context => {
  await using sandbox = await open({ limits: { memory: 64 * 1024 ** 2, processes: 40 } }, context)
  const hog = await sandbox.exec('head -c 500000000 /dev/zero | tail -n 1 > /dev/null').result
  expect(hog.exitCode).not.toBe(0)
  const many = await sandbox.exec('i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done', {
    timeout: 300_000,
  }).result
  expect(many.exitCode).not.toBe(0)
  expect(out(await sandbox.exec('echo here').result)).toBe('here\n')
})

test('a folder of this machine is the workspace, and neither copied nor forked with the container', async context => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'work')
  await using sandbox = await open({ path }, context)
  expect([sandbox.cwd, sandbox.hostPath]).toEqual(['/workspace', path])
  expect([sandbox.fork, sandbox.snapshot, sandbox.changes]).toEqual([undefined, undefined, undefined])
  await sandbox.exec('echo inside > made').result
  writeFileSync(join(path, 'given'), 'outside')
  expect(readFileSync(join(path, 'made'), 'utf8')).toBe('inside\n')
  expect(text(await sandbox.files.read('given'))).toBe('outside')
  await sandbox.close()
  expect(existsSync(join(path, 'made'))).toBe(true)
})

test('changes are files that were made, changed or removed since the opening, or since a mark', async context => {
  await using sandbox = await open({}, context)
  await sandbox.files.write('a/one', '1')
  await sandbox.files.write('two words', '2')
  const first = await sandbox.changes?.()
  expect(first?.paths).toEqual(['a/one', 'two words'])
  expect((await sandbox.changes?.(first?.mark))?.paths).toEqual([])
  await sandbox.exec('echo more >> a/one; rm "two words"; echo 3 > three; echo > /tmp/elsewhere').result
  expect((await sandbox.changes?.(first?.mark))?.paths).toEqual(['a/one', 'three', 'two words'])
  await expect(sandbox.changes?.('no-such-mark')).rejects.toMatchObject({ code: 'invalid-argument' })
})

test('forks start with the files, go their own ways, and leave no image behind', async context => {
  const { docker: engineOf } = engine(context)
  const images = async () => (await engineOf.listImages()).length
  const before = await images()
  await using sandbox = await open({ env: { MODE: 'test' } }, context)
  await sandbox.files.write('shared', 'same')
  const forks = (await sandbox.fork?.(2)) as readonly Sandbox[]
  const [left, right] = forks as [Sandbox, Sandbox]
  await Promise.all([left.files.write('shared', 'left'), right.files.write('own', 'right')])
  expect(text(await sandbox.files.read('shared'))).toBe('same')
  expect(text(await right.files.read('shared'))).toBe('same')
  expect(await left.files.stat('own')).toBeNull()
  expect(out(await left.exec('echo $MODE').result)).toBe('test\n')
  expect((await left.changes?.())?.paths).toEqual(['shared'])
  await sandbox.close()
  for (const fork of forks) await fork.close()
  expect(await images()).toBe(before)
  await expect(sandbox.fork?.(1)).rejects.toMatchObject({ code: 'sandbox-closed' })
})

test('a snapshot outlives its sandbox, and opens again', async context => {
  const { docker: engineOf } = engine(context)
  await using sandbox = await open({}, context)
  await sandbox.files.write('kept', 'yes')
  const snapshot = (await sandbox.snapshot?.()) as string
  await sandbox.close()
  await using again = await docker.open({ snapshot })
  expect(text(await again.files.read('kept'))).toBe('yes')
  await again.close()
  await engineOf.getImage(snapshot).remove({ force: true })
  await expect(docker.open({ snapshot })).rejects.toMatchObject({ code: 'sandbox-unavailable' })
})

test('another process finds a sandbox again by its id, with its environment', async context => {
  const sandbox = await open({ env: { MODE: 'kept' }, passEnv: ['TOKEN'] }, context)
  await sandbox.files.write('file', 'there')
  const { socket } = engine(context)
  const other = dockerBackend({ socket, environment: { TOKEN: 'of-the-other' } })
  await using found = (await other.attach?.(sandbox.id)) as Sandbox
  expect(text(await found.files.read('file'))).toBe('there')
  expect(out(await found.exec('echo $MODE $TOKEN').result)).toBe('kept of-the-other\n')
  await found.close()
  await expect(other.attach?.(sandbox.id)).rejects.toMatchObject({ code: 'sandbox-unavailable' })
  await sandbox.close()
})

test('a secret that is passed by name is in no description of the container', async context => {
  const { docker: engineOf, socket, image } = engine(context)
  const backend = dockerBackend({ socket, image, environment: { TOKEN: 'very-secret' } })
  await using sandbox = await backend.open({ passEnv: ['TOKEN', 'ABSENT'] })
  expect(out(await sandbox.exec('echo $TOKEN').result)).toBe('very-secret\n')
  expect(JSON.stringify(await engineOf.getContainer(sandbox.id).inspect())).not.toContain('very-secret')
})

test('commands and files are those of the user that is asked for', async context => {
  await using sandbox = await open({ user: '1234' }, context)
  await sandbox.files.write('mine', 'x')
  expect(out(await sandbox.exec('id -u; stat -c %u mine; echo > by-command && echo fine').result)).toBe(
    '1234\n1234\nfine\n',
  )
})

test('a process that hides its mark in every way ends with the last command', async context => {
  await using sandbox = await open({}, context)
  const hidden = `env -i setsid /bin/sh -c 'exec 3<&-; echo $$ > pid; exec sleep 1000' > /dev/null 2>&1 &`
  await sandbox.exec(`${hidden} until test -s pid; do sleep 0.01; done`).result
  expect(out(await sandbox.exec('ps -o stat= -p $(cat pid)').result).trim()).toMatch(/^(Z.*)?$/)
})

test('the end of one command leaves the processes of another alone', async context => {
  await using sandbox = await open({}, context)
  const other = sandbox.exec('sleep 1000 & echo $!; wait')
  let pid = ''
  for await (const { data } of other) {
    pid = text(data).trim()
    break
  }
  await sandbox.exec('sleep 1000 & true').result
  expect(out(await sandbox.exec(`ps -o stat= -p ${pid}`).result).trim()).toMatch(/^S/)
  other.kill()
  await other.result
})

test('a process that is killed leaves a container that is found and removed, and others are not', async context => {
  const { socket, image, docker: engineOf } = engine(context)
  await using mine = await open({}, context)
  const module = new URL('../../src/sandbox/drivers/docker/driver.ts', import.meta.url).href
  const program = `
    const { dockerBackend } = await import(${JSON.stringify(module)})
    const sandbox = await dockerBackend(${JSON.stringify({ socket, image })}).open(undefined)
    console.log(sandbox.id)
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const [id] = await once(child.stdout, 'data').then(([data]) => String(data).trim().split('\n'))
  child.kill('SIGKILL')
  await once(child, 'exit')
  const found = await leftovers({ socket, keep: true })
  expect(found.map(one => [one.kind, one.id, one.pid])).toEqual([['container', id, child.pid]])
  await leftovers({ socket })
  const left = (await engineOf.listContainers({ all: true })).map(({ Id }) => Id)
  expect([left.includes(id as string), left.includes(mine.id)]).toEqual([false, true])
})

test('an opening that is aborted or fails leaves no container behind', async context => {
  const { docker: engineOf, image } = engine(context)
  const before = (await engineOf.listContainers({ all: true })).length
  const abort = new AbortController()
  const opening = docker.open({ image }, { signal: abort.signal })
  abort.abort()
  await expect(opening).rejects.toMatchObject({ code: 'cancelled' })
  await expect(docker.open({ image: 'localhost/no-such-image:1' })).rejects.toMatchObject({
    code: expect.stringMatching(/^sandbox-(unavailable|failed)$/),
  })
  expect((await engineOf.listContainers({ all: true })).length).toBe(before)
})

test('without an engine it says where it looked, and what to start', async () => {
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'podman'))
  const nowhere = dockerBackend({ socket: join(folder.path, 'no-socket'), image: 'x' })
  expect(await nowhere.probe?.()).toMatchObject({
    available: false,
    reason: expect.stringMatching(/no-socket/),
  })
  await expect(nowhere.open(undefined)).rejects.toMatchObject({ code: 'sandbox-unavailable' })
  const address = dockerBackend({ environment: { DOCKER_HOST: `unix://${folder.path}/named` } })
  expect((await address.probe?.())?.reason).toMatch(/named/)
})

test('a spec that is wrong is refused with all that is wrong', async () => {
  const spec = {
    path: 7,
    env: { A: 1 },
    network: 'host',
    ports: [0],
    limits: { disk: 1, cpus: -1 },
    color: 1,
  }
  const error = await dockerBackend()
    .open(spec as never)
    .catch(e => e)
  expect(error.code).toBe('invalid-argument')
  const wrong = ['image', 'path', 'env', 'network', 'ports', 'limits.disk', 'limits.cpus', 'color']
  for (const name of wrong) expect(error.message).toContain(name)
})

test('the record, settings of git and loaded code of a folder are not for its commands to change', async context => {
  engine(context)
  using place = temporaryFolder()
  const at = (name: string) => join(place.path, name)
  for (const folder of ['.git/hooks', '.git/info', '.git/objects', 'node_modules/lazy', 'src'])
    mkdirSync(at(folder), { recursive: true })
  writeFileSync(at('.git/config'), '[core]\n')
  writeFileSync(at('.git/HEAD'), 'ref: refs/heads/main\n')
  writeFileSync(at('node_modules/lazy/index.mjs'), "export default 'as installed'\n")
  const url = pathToFileURL(at('node_modules/lazy/index.mjs')).href
  await import(url)
  const sandbox = await open({ path: place.path }, context)
  try {
    const script = [
      'echo x >> .git/config; echo x > .git/hooks/pre-commit; mv .git old; mv node_modules old',
      'echo x > node_modules/lazy/index.mjs; mkdir -p .openrath; echo x > .openrath/config.json; echo x > .git/commondir',
      'echo fine > .git/HEAD.lock && mv .git/HEAD.lock .git/HEAD && echo fine > src/new',
    ].join('\n')
    const { exitCode, stderr } = await sandbox.exec(script).result
    expect(exitCode, text(stderr)).toBe(0)
    expect(text(stderr)).toContain(
      'the command made .git/commondir, which can make git run programs; removed',
    )
    expect(readFileSync(at('.git/config'), 'utf8')).toBe('[core]\n')
    expect(readFileSync(at('node_modules/lazy/index.mjs'), 'utf8')).toContain('as installed')
    expect(
      ['.git/hooks/pre-commit', '.openrath/config.json', '.git/commondir'].map(at).filter(existsSync),
    ).toEqual([])
    expect(readFileSync(at('.git/HEAD'), 'utf8')).toBe('fine\n')
    expect(existsSync(at('src/new'))).toBe(true)
    await expect(sandbox.files.write('.git/config', 'x')).rejects.toMatchObject({ code: 'path-read-only' })
    await expect(sandbox.files.write('.openrath/x', 'x')).rejects.toMatchObject({ code: 'path-outside' })
    expect((await sandbox.files.list('.')).map(({ name }) => name)).not.toContain('.openrath')
  } finally {
    await sandbox.exec('rm -rf src/* .git/* 2>/dev/null').result
    await sandbox.close()
  }
})

test('a spec may make settings of git writable', async context => {
  engine(context)
  using place = temporaryFolder()
  mkdirSync(join(place.path, '.git/hooks'), { recursive: true })
  writeFileSync(join(place.path, '.git/config'), '[core]\n')
  await using sandbox = await open({ path: place.path, writable: ['git'] }, context)
  const { exitCode } = await sandbox.exec('echo x >> .git/config').result
  expect(exitCode).toBe(0)
  await expect(open({ path: place.path, writable: ['all'] }, context)).rejects.toThrow(/list of git and code/)
})
