import { Sandbox as Client } from '@alibaba-group/opensandbox'
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { openSandboxBackend } from '../../src/sandbox/drivers/opensandbox/driver.ts'
import type { Sandbox, SandboxBackend } from '../../src/sandbox/spec.ts'
import { testSandbox } from '../../src/testing/sandbox.ts'
import { out } from './make.ts'
import { boxProblem } from './stand-in/box.ts'
import { type StandIn, startStandIn } from './stand-in/server.ts'

// Against a server when OPEN_SANDBOX_DOMAIN names one, with the image OPEN_SANDBOX_IMAGE; else against the stand-in.
const isLive = Boolean(process.env.OPEN_SANDBOX_DOMAIN)
const problem = isLive ? undefined : boxProblem()
let standIn: StandIn | undefined
let remote: SandboxBackend = openSandboxBackend()

const except = {
  'endless output does not fill the memory, and is stopped by a timeout':
    'the server sends each line as an event, too few of them in the given time to fill the limit',
  'a slow follower gets everything, and one who leaves does not stop the command':
    'the client takes half a minute to read an event of 5 MB; lines are followed below',
}

beforeAll(async () => {
  const image = process.env.OPEN_SANDBOX_IMAGE ?? 'debian:12-slim'
  if (isLive) remote = openSandboxBackend({ image })
  else if (problem === undefined) {
    standIn = await startStandIn()
    remote = openSandboxBackend({ ...standIn, image })
  }
})

afterAll(async () => {
  await standIn?.[Symbol.asyncDispose]()
})

async function open({ skip }: TestContext, spec?: object): Promise<Sandbox> {
  if (problem !== undefined) return skip(problem)
  return remote.open(spec && ({ image: 'debian:12-slim', ...spec } as never))
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

describe.concurrent(`conformance of ${isLive ? 'the server' : 'the stand-in'}`, () => {
  const opened: SandboxBackend = { ...remote, open: (...args) => remote.open(...args) }
  for (const { name, run } of testSandbox(opened, { except })) {
    test(name, async ({ skip }) => {
      if (problem !== undefined) return skip(problem)
      await run()
    })
  }
})

test('forks start with the files, go their own ways, and leave no snapshot behind', async context => {
  await using sandbox = await open(context)
  await sandbox.files.write('shared', 'same', { mode: 0o750 })
  const forks = (await sandbox.fork?.(2)) as readonly Sandbox[]
  const [left, right] = forks as [Sandbox, Sandbox]
  await left.files.write('shared', 'left')
  expect([text(await sandbox.files.read('shared')), text(await right.files.read('shared'))]).toEqual([
    'same',
    'same',
  ])
  expect((await left.files.stat('shared'))?.mode).toBe(0o750)
  expect((await left.changes?.())?.paths).toEqual(['shared'])
  expect((await right.changes?.())?.paths).toEqual([])
  await Promise.all([...forks, sandbox].map(one => one.close()))
  if (standIn)
    expect([standIn.lifecycle.snapshots.size, forks.some(({ id }) => isOpen(id))]).toEqual([0, false])
})

function isOpen(id: string): boolean {
  return standIn?.lifecycle.boxes.has(id) ?? false
}

test('a snapshot outlives its sandbox, and opens again', async context => {
  await using sandbox = await open(context)
  await sandbox.files.write('kept', 'yes')
  const snapshot = (await sandbox.snapshot?.()) as string
  await sandbox.close()
  await using again = await remote.open({ snapshot })
  expect(text(await again.files.read('kept'))).toBe('yes')
})

test('changes are files that were made, changed or removed since the opening, or since a mark', async context => {
  await using sandbox = await open(context)
  await sandbox.files.write('a/one', '1')
  await sandbox.files.write('new\nline', '2')
  const first = await sandbox.changes?.()
  expect(first?.paths).toEqual(['a/one', 'new\nline'])
  await sandbox.exec('echo more >> a/one; rm new*; echo 3 > three').result
  expect((await sandbox.changes?.(first?.mark))?.paths).toEqual(['a/one', 'new\nline', 'three'])
})

test('another process finds a sandbox again by its id, until it is closed', async context => {
  const sandbox = await open(context, { env: { MODE: 'kept' } })
  await sandbox.files.write('file', 'there')
  await using found = (await remote.attach?.(sandbox.id)) as Sandbox
  expect(text(await found.files.read('file'))).toBe('there')
  expect(out(await found.exec('echo $MODE').result)).toBe('kept\n')
  await sandbox.close()
  await expect(remote.attach?.(sandbox.id)).rejects.toMatchObject({ code: 'sandbox-unavailable' })
})

test('lines come as they were, with the last line feed or without it', async context => {
  await using sandbox = await open(context)
  for (const printed of ['one\n\ntwo', 'one\n', '\n', '', 'a\n\n\n', ' Größe 🎈']) {
    const { stdout, stderr } = await sandbox.exec('printf %s "$TEXT"; printf %s "$TEXT" >&2', {
      env: { TEXT: printed },
    }).result
    expect([text(stdout), text(stderr)]).toEqual([printed, printed])
  }
})

test('a slow follower gets every line, and is not waited for when it leaves', async context => {
  await using sandbox = await open(context)
  const command = sandbox.exec('i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; echo > done')
  let seen = ''
  for await (const { data } of command) {
    await new Promise(resolve => setImmediate(resolve))
    seen += text(data)
  }
  expect(seen).toBe(Array.from({ length: 3000 }, (_, i) => `${i}\n`).join(''))
  const other = sandbox.exec('yes | head -n 3000; echo > left')
  for await (const _ of other) break
  expect((await other.result).exitCode).toBe(0)
  expect(await sandbox.files.stat('left')).not.toBeNull()
})

test('a command is over when it has ended, not when the server closes its stream', async context => {
  // Held open for longer than a test may take.
  await using sandbox = await open(context, { env: { EXECD_API_GRACE_SHUTDOWN: '600000ms' } })
  expect((await sandbox.exec('exit 3').result).exitCode).toBe(3)
})

test('an address can be had for a port', async context => {
  await using sandbox = await open(context)
  expect(await sandbox.expose?.(8080)).toMatch(/^https?:\/\/.+8080/)
})

test('a wrong key and a server that is not there are told apart', async context => {
  if (standIn === undefined) return context.skip(problem ?? 'the server has its own key')
  const wrong = openSandboxBackend({ domain: standIn.domain, apiKey: 'wrong', image: 'x' })
  await expect(wrong.open(undefined)).rejects.toMatchObject({
    code: 'sandbox-unavailable',
    message: expect.stringMatching(/refuses the key/),
  })
  const nowhere = openSandboxBackend({ domain: '127.0.0.1:1', image: 'x' })
  expect(await nowhere.probe?.()).toMatchObject({
    available: false,
    reason: expect.stringMatching(/127.0.0.1:1/),
  })
  const unset = openSandboxBackend({ environment: {}, image: 'x' })
  expect((await unset.probe?.())?.reason).toMatch(/OPEN_SANDBOX_DOMAIN/)
})

test('a spec that is wrong is refused with all that is wrong', async () => {
  const spec = { env: { A: 1 }, hosts: 'x', limits: { disk: 1 }, expires: 5, path: './' }
  const error = await openSandboxBackend()
    .open(spec as never)
    .catch(e => e)
  expect(error.code).toBe('invalid-argument')
  for (const name of ['image', 'env', 'hosts', 'limits.disk', 'expires', 'path']) {
    expect(error.message).toContain(name)
  }
})

// What the driver relies on the stand-in to do as the real server does.
describe('the stand-in', () => {
  test('reads the digits of a mode as octal ones, and answers 404 by other codes for other calls', async ({
    skip,
  }) => {
    if (standIn === undefined) return skip(problem ?? 'a real server is tested')
    const client = await Client.create({ connectionConfig: { ...standIn }, image: 'x' })
    await client.files.writeFiles([
      { path: '/tmp/right', data: 'x', mode: 644 },
      { path: '/tmp/wrong', data: 'x', mode: 0o644 },
    ])
    const { '/tmp/right': right, '/tmp/wrong': wrong } = await client.files.getFileInfo([
      '/tmp/right',
      '/tmp/wrong',
    ])
    expect([right?.mode, wrong?.mode]).toEqual([644, 420])
    const missing = { statusCode: 404 }
    await expect(client.files.readFile('/tmp/none')).rejects.toMatchObject({
      ...missing,
      error: { code: 'UNEXPECTED_RESPONSE' },
    })
    await expect(client.files.getFileInfo(['/tmp/none'])).rejects.toMatchObject({
      ...missing,
      error: { code: 'FILE_NOT_FOUND' },
    })
    await client.kill()
    await client.close()
  })

  test('sends lines without line feeds, goes on when a client leaves, and says -1 of a signal', async ({
    skip,
  }) => {
    if (standIn === undefined) return skip(problem ?? 'a real server is tested')
    const client = await Client.create({ connectionConfig: { ...standIn }, image: 'x' })
    const { logs, exitCode } = await client.commands.run(`printf 'a\\n\\nb\\377'; exit 3`)
    expect([logs.stdout.map(line => line.text), exitCode]).toEqual([['a', '\n', 'b\ufffd'], 3])
    const events: (string | undefined)[] = []
    for await (const event of client.commands.runStream('echo up; sleep 1000')) {
      events.push(event.type)
      if (event.type === 'init') await client.commands.interrupt(event.text as string)
      if (event.type === 'error')
        expect(event.error).toMatchObject({ evalue: '-1', traceback: ['signal: terminated'] })
    }
    expect(events.at(-1)).toBe('error')
    await client.kill()
    await client.close()
  })
})
