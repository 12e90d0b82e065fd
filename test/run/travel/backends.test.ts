import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, type TestContext } from 'vitest'
import { bisect } from '../../../src/evidence/bisect.ts'
import { blame } from '../../../src/evidence/blame.ts'
import { Agent } from '../../../src/flow/agent.ts'
import { createRuntime, type Runtime } from '../../../src/run/runtime.ts'
import { dockerBackend } from '../../../src/sandbox/drivers/docker/driver.ts'
import { isolatedBackend } from '../../../src/sandbox/drivers/isolated/driver.ts'
import { openSandboxBackend } from '../../../src/sandbox/drivers/opensandbox/driver.ts'
import type { SandboxBackend } from '../../../src/sandbox/spec.ts'
import { Session } from '../../../src/session/session.ts'
import { scripted } from '../../../src/testing/scripted.ts'
import { temporaryFolder } from '../../sandbox/make.ts'
import { remoteHere } from '../../sandbox/remote-here.ts'
import { boxProblem } from '../../sandbox/stand-in/box.ts'
import { type Engine, startPodman } from '../../sandbox/stand-in/podman.ts'
import { type StandIn, startStandIn } from '../../sandbox/stand-in/server.ts'
import { publish, runs, worker, writes } from './make.ts'

let podman: Engine | string = 'not started'
let standIn: StandIn | undefined
beforeAll(async () => {
  podman = await startPodman()
  if (boxProblem() === undefined) standIn = await startStandIn()
}, 120_000)
afterAll(async () => {
  await standIn?.[Symbol.asyncDispose]()
  if (typeof podman === 'string') return
  for (const { Id } of await podman.docker.listContainers({ all: true }))
    await podman.docker.getContainer(Id).remove({ force: true })
  await podman[Symbol.asyncDispose]()
}, 120_000)

/** Each backend, or why it cannot be had here. */
const backends: Readonly<Record<string, () => Promise<SandboxBackend | string>>> = {
  local: async () => 'ours',
  isolated: async () => {
    const backend = isolatedBackend()
    const { available, reason = '' } = (await backend.probe?.()) ?? { available: true }
    return available ? backend : reason
  },
  docker: async () =>
    typeof podman === 'string' ? podman : dockerBackend({ socket: podman.socket, image: podman.busybox }),
  opensandbox: async () =>
    standIn ? openSandboxBackend({ ...standIn, image: 'debian:12-slim' }) : (boxProblem() ?? 'not started'),
  // A backend of somebody else's, which knows nothing of trees.
  remote: async () => remoteHere({ forks: false, attaches: false }).backend,
}

let folder: ReturnType<typeof temporaryFolder>
const open: Runtime[] = []
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map(runtime => runtime.close()))
  folder[Symbol.dispose]()
})

async function runtimeWith(name: string, { skip }: TestContext): Promise<Runtime> {
  const backend = await (backends[name] as () => Promise<SandboxBackend | string>)()
  if (typeof backend === 'string' && backend !== 'ours') return skip(backend)
  return started(typeof backend === 'string' ? undefined : backend)
}

function started(backend: SandboxBackend | undefined, machine = 'one'): Runtime {
  const runtime = createRuntime({
    store: `sqlite:${join(folder.path, 'rath.db')}`,
    workspaces: join(folder.path, machine),
    ...(backend && { sandboxes: [backend] }),
  })
  open.push(runtime)
  return runtime
}

async function filesOf(runtime: Runtime, session: Session): Promise<Record<string, string>> {
  const path = join(folder.path, `out-${Math.random()}`)
  await runtime.checkout(session, path)
  const names = readdirSync(path, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const found = Object.fromEntries(
    names
      .map(entry => join(entry.parentPath, entry.name))
      .map(name => [name.slice(path.length + 1), readFileSync(name, 'utf8')]),
  )
  rmSync(path, { recursive: true })
  return found
}

describe.each(Object.keys(backends))('on %s', name => {
  it('files follow the session: fork, merge, rewind, checkout, diff, blame and bisect', async context => {
    const runtime = await runtimeWith(name, context)
    const start = Session.fromUserMessage('go').to(name)
    const base = await runtime.run(
      worker('base', [writes('list.txt', '1\n2\n3\n4\n5\n')], [runs('mkdir d; echo x > d/x')]),
      start,
    )
    const [left, right] = base.forks(['left', 'right']) as [Session, Session]
    const [ours, theirs] = await Promise.all([
      runtime.run(worker('ours', [runs("sed -i 's/^1$/one/' list.txt; rm d/x")]), left),
      runtime.run(worker('theirs', [runs("sed -i 's/^5$/five/' list.txt; echo new > new.txt")]), right),
    ])
    expect(
      (await ours.diff(theirs)).files.map(({ path, side, change }) => `${side} ${change} ${path}`),
    ).toEqual([
      'ours deleted d/x',
      'ours modified list.txt',
      'theirs modified list.txt',
      'theirs added new.txt',
    ])
    const merged = await ours.merge(theirs)
    const joined = { 'list.txt': 'one\n2\n3\n4\nfive\n', 'new.txt': 'new\n' }
    expect(await filesOf(runtime, merged)).toEqual(joined)
    // What goes on from the merge finds its files.
    const after = await runtime.run(worker('after', [runs('cat list.txt new.txt > all.txt')]), merged)
    expect(await filesOf(runtime, after)).toEqual({ ...joined, 'all.txt': 'one\n2\n3\n4\nfive\nnew\n' })
    const back = await runtime.run(worker('back', [runs('ls > names.txt')]), after.rewind(base.length - 1))
    expect((await filesOf(runtime, back))['names.txt']).toBe('d\nlist.txt\nnames.txt\n')

    const store = await runtime.store
    const options = { store, workspaces: join(folder.path, 'one') }
    const lines = await blame(after, { path: 'list.txt' }, options)
    expect(lines.map(({ producer }) => producer?.by)).toEqual(['ours', 'base', 'base', 'base', 'theirs'])
    const found = await bisect(after, path => (existsSync(join(path, 'new.txt')) ? 'fail' : 'pass'), options)
    expect(found).toMatchObject({ result: 'found' })
    expect((await store.sessions.get(after.id)).verify()).toMatchObject({ ok: true })
  }, 240_000)

  it('a run that was cut off is resumed with its files, where the place itself is gone', async context => {
    const runtime = await runtimeWith(name, context)
    const made = () =>
      new Agent('Work.', {
        name: 'release',
        tools: [publish],
        model: scripted([
          { toolCalls: [runs('mkdir -p notes; echo kept > notes/a.md') as never] },
          { toolCalls: [{ name: 'publish', args: {} }] },
          { toolCalls: [runs('cat notes/a.md > b.md') as never] },
          'Done.',
        ]),
      })
    const run = runtime.run(made(), Session.fromUserMessage('go').to(name), { id: 'release' })
    await expect(run).rejects.toMatchObject({ code: 'run-waiting' })
    await runtime.close()
    // Another machine: nothing is there but the store.
    const backend = await (backends[name] as () => Promise<SandboxBackend | string>)()
    const other = started(typeof backend === 'string' ? undefined : backend, 'two')
    const [question] = await other.approvals('release')
    await other.decide('release', question?.approval as string, { verdict: 'approved', by: 'ada' })
    const out = await other.resume('release', made())
    expect(await filesOf(other, out)).toEqual({ 'notes/a.md': 'kept\n', 'b.md': 'kept\n' })
  }, 240_000)
})

describe('from one backend to another', () => {
  it.for(['docker', 'opensandbox', 'remote'])(
    'files go along from local to %s and back',
    { timeout: 240_000 },
    async (name, context) => {
      const runtime = await runtimeWith(name, context)
      const project = join(folder.path, 'project')
      mkdirSync(project)
      writeFileSync(join(project, 'given.txt'), 'given\n')
      const start = Session.fromUserMessage('go').to('local', project)
      const here = await runtime.run(worker('here', [writes('here.txt', 'here\n')]), start)
      const there = await runtime.run(
        worker('there', [runs('cat given.txt here.txt > there.txt')]),
        here.to(name),
      )
      expect(await filesOf(runtime, there)).toEqual({
        'given.txt': 'given\n',
        'here.txt': 'here\n',
        'there.txt': 'given\nhere\n',
      })
      const back = await runtime.run(
        worker('back', [runs('wc -l < there.txt | tr -d " " > lines')]),
        there.to('local'),
      )
      expect((await filesOf(runtime, back)).lines).toBe('2\n')
      expect(
        readdirSync(project)
          .filter(one => one !== '.openrath')
          .sort(),
      ).toEqual(['given.txt', 'here.txt'])

      // Branches on different backends are merged: both have trees.
      const [left, right] = here.forks(['left', 'right']) as [Session, Session]
      const ours = await runtime.run(worker('ours', [writes('ours.txt', 'ours\n')]), left)
      const theirs = await runtime.run(worker('theirs', [runs('echo theirs > theirs.txt')]), right.to(name))
      const merged = await ours.merge(theirs)
      expect(merged.placement).toMatchObject({ backend: 'local' })
      expect(Object.keys(await filesOf(runtime, merged)).sort()).toEqual([
        'given.txt',
        'here.txt',
        'ours.txt',
        'theirs.txt',
      ])
    },
  )
})

it('a folder of this machine in a container keeps its files, and branches work in containers without it', {
  timeout: 240_000,
}, async context => {
  const runtime = await runtimeWith('docker', context)
  const project = join(folder.path, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'given.txt'), 'given\n')
  const start = Session.fromUserMessage('go').to('docker', {
    image: (podman as Engine).busybox,
    path: project,
  })
  const base = await runtime.run(worker('base', [runs('cat given.txt > base.txt')]), start)
  const branch = await runtime.run(
    worker('branch', [runs('echo branch > branch.txt; rm given.txt')]),
    base.fork(),
  )
  expect(
    readdirSync(project)
      .filter(name => name !== '.openrath')
      .sort(),
  ).toEqual(['base.txt', 'given.txt'])
  expect(await filesOf(runtime, branch)).toEqual({ 'base.txt': 'given\n', 'branch.txt': 'branch\n' })
  const merged = await base.merge(branch)
  expect(
    readdirSync(project)
      .filter(name => name !== '.openrath')
      .sort(),
  ).toEqual(['base.txt', 'branch.txt'])
  expect(await filesOf(runtime, merged)).toEqual({ 'base.txt': 'given\n', 'branch.txt': 'branch\n' })
})
