import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, test } from 'vitest'
import { Places } from '../../src/run/place/places.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Sandbox } from '../../src/sandbox/spec.ts'
import { Session } from '../../src/session/session.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { remoteHere } from '../sandbox/remote-here.ts'

const closing: Places[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map(places => places.close()))
})

function placesOf({ backend }: ReturnType<typeof remoteHere>): Places {
  const places = new Places({ sandboxes: [backend], workspaces: false })
  closing.push(places)
  return places
}

/** What a tool call leaves on the record: does something in the session's sandbox, in a run of its own. */
async function call(
  places: Places,
  session: Session,
  work: (sandbox: Sandbox) => Promise<unknown>,
  run = 'r',
): Promise<Session> {
  const capture = places.capture({ session, run })
  await capture.run(async () => work(await capture.sandbox()))
  const { ranOn } = await capture.end()
  const value = null
  const outcome = { kind: 'value' as const, value }
  return session.append({ kind: 'tool-result', callId: 'c', tool: 'work', outcome, ...(ranOn && { ranOn }) })
}

const writes = (text: string) => (sandbox: Sandbox) => sandbox.files.write('a.txt', text)
const text = async (places: Places, session: Session) => {
  const { sandbox } = await places.open({ session })
  return new TextDecoder().decode(await sandbox.files.read('a.txt'))
}
const start = () => Session.fromUserMessage('go').to('remote')

describe('a fork where only the backend can copy files', () => {
  test('gets a copy of the place as it is', async () => {
    const remote = remoteHere()
    const places = placesOf(remote)
    const parent = await call(places, start(), writes('before'))
    const fork = await call(places, parent.fork(), writes('in the fork'))
    expect([await text(places, parent), await text(places, fork)]).toEqual(['before', 'in the fork'])
    const inner = await call(places, fork.fork(), async () => {})
    expect([await text(places, inner), remote.open.size]).toEqual(['in the fork', 3])
  })

  test('is made of a place that was only read since', async () => {
    const places = placesOf(remoteHere())
    const parent = await call(places, start(), writes('before'))
    const { sandbox } = await places.open({ session: parent })
    const ranOn = { backend: 'remote', id: sandbox.id, cwd: sandbox.cwd }
    const outcome = { kind: 'value' as const, value: 'before' }
    const read = parent.append({ kind: 'tool-result', callId: 'c', tool: 'read', outcome, ranOn })
    expect(await text(places, read.fork())).toBe('before')
  })

  test('is refused when the place has moved on since the fork', async () => {
    const places = placesOf(remoteHere())
    const parent = await call(places, start(), writes('before'))
    const fork = parent.fork()
    await call(places, parent, writes('after'))
    await expect(places.open({ session: fork })).rejects.toMatchObject({
      code: 'workspace-moved',
      message: expect.stringContaining('2 calls may have changed it, and the branch knows of 1'),
    })
  })

  test('waits for a call that changes the place, and is refused then', async () => {
    const places = placesOf(remoteHere())
    const parent = await call(places, start(), writes('before'))
    const { promise: gate, resolve } = Promise.withResolvers<void>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const changing = call(places, parent, async sandbox => {
      await sandbox.files.write('a.txt', 'half')
      begin()
      await gate
    })
    await begun
    const opening = places.open({ session: parent.fork() })
    opening.catch(() => {})
    resolve()
    await changing
    await expect(opening).rejects.toMatchObject({ code: 'workspace-moved' })
  })

  test('is refused by a backend that cannot, and may share the files instead', async () => {
    const places = placesOf(remoteHere({ forks: false }))
    const parent = await call(places, start(), writes('before'))
    await expect(places.open({ session: parent.fork() })).rejects.toMatchObject({
      code: 'sandbox-unsupported',
      message: expect.stringContaining("{ workspace: 'shared' }"),
    })
    expect(await text(places, parent.fork({ workspace: 'shared' }))).toBe('before')
  })

  test('keeps its files from one run to the next: there is no other place to take them from', async () => {
    const places = placesOf(remoteHere())
    const fork = await call(places, start().fork(), writes('in the fork'), 'one')
    await places.leave('one')
    expect(await text(places, await call(places, fork, async () => {}, 'two'))).toBe('in the fork')
  })
})

describe('a session that another process began', () => {
  test('finds the sandboxes again that its record names, its own on each lane', async () => {
    const remote = remoteHere()
    const before = placesOf(remote)
    const parent = await call(before, start(), writes('parent'))
    const fork = await call(before, parent.fork(), writes('fork'))
    const after = placesOf(remote)
    const [one, two] = [parent, fork].map(session => Session.fromJSONL(session.toJSONL())) as [
      Session,
      Session,
    ]
    expect([await text(after, two), await text(after, one)]).toEqual(['fork', 'parent'])
    expect([await text(after, one.fork()), remote.open.size]).toEqual(['parent', 3])
  })

  test('that was placed anew since begins anew', async () => {
    const remote = remoteHere()
    const session = await call(placesOf(remote), start(), writes('old'))
    const { sandbox } = await placesOf(remote).open({ session: session.to('remote') })
    expect(await sandbox.files.stat('a.txt')).toBeNull()
  })

  test('is told when its sandbox is gone', async () => {
    const remote = remoteHere()
    const before = placesOf(remote)
    const session = await call(before, start(), writes('x'))
    await before.close()
    await expect(placesOf(remote).open({ session })).rejects.toMatchObject({ code: 'sandbox-unavailable' })
  })

  test('does not get the files of its parent for those of its branch', async () => {
    const remote = remoteHere({ attaches: false })
    const fork = await call(placesOf(remote), start().fork(), writes('in the fork'))
    await expect(placesOf(remote).open({ session: fork })).rejects.toMatchObject({
      code: 'sandbox-unavailable',
      message: expect.stringContaining('Place the branch anew with to()'),
    })
  })
})

test('a replay of tools works on copies, in sandboxes of its own', async () => {
  using folder = temporaryFolder()
  const { backend, open } = remoteHere()
  const places = new Places({ sandboxes: [backend], workspaces: folder.path })
  closing.push(places)
  const session = await call(places, start(), writes('recorded'))
  const tree = await places.look({ session })
  const scratch = places.scratch(tree as string) as Places
  closing.push(scratch)
  const { sandbox } = await scratch.open({ session: start() })
  await sandbox.files.write('a.txt', 'in the copy')
  expect([await text(places, session), open.size]).toEqual(['recorded', 2])
})

test('a sandbox without the programs that it takes to keep files is used as it is', async () => {
  using folder = temporaryFolder()
  const { backend } = remoteHere()
  const bare: typeof backend = {
    ...backend,
    async open(...args) {
      const sandbox = await backend.open(...args)
      // No find, no stat: every script ends without a word.
      const exec: Sandbox['exec'] = () => sandbox.exec('exit 127')
      return { ...sandbox, exec }
    },
  }
  const places = new Places({ sandboxes: [bare], workspaces: folder.path })
  closing.push(places)
  const session = await call(places, start(), writes('as ever'))
  expect(await text(places, session)).toBe('as ever')
  expect(session.chunks.at(-1)).not.toHaveProperty('tree')
})

test('closing the runtime closes every sandbox, those of branches too', async () => {
  const remote = remoteHere()
  const runtime = createRuntime({ store: 'memory:', sandboxes: [remote.backend], workspaces: false })
  const session = start()
  for (const one of [session, session.fork(), session.fork()]) await runtime.places.open({ session: one })
  expect(remote.open.size).toBe(3)
  await runtime.close()
  expect(remote.open.size).toBe(0)
})

test('a sandbox is closed when no session is left that can use it, and not before', () => {
  const modules = [
    '../../src/run/place/places.ts',
    '../../src/session/session.ts',
    '../sandbox/remote-here.ts',
  ]
  const [places, session, here] = modules.map(path => JSON.stringify(new URL(path, import.meta.url).pathname))
  const program = `
    import { setImmediate as turn } from 'node:timers/promises'
    import { Places } from ${places}
    import { Session } from ${session}
    import { remoteHere } from ${here}
    const { backend, open } = remoteHere()
    const places = new Places({ sandboxes: [backend], workspaces: false })
    async function closedAt(size) {
      for (let turns = 0; turns < 10 && open.size > size; turns++) { gc(); await turn() }
      return open.size === size
    }
    let kept = Session.fromUserMessage('go').to('remote')
    await places.open({ session: kept })
    await (async () => places.open({ session: Session.fromUserMessage('other').to('remote') }))()
    console.log(open.size, await closedAt(1))
    let fork = kept.user('more').fork()
    kept = undefined
    console.log(fork.length, await closedAt(0))
    fork = undefined
    console.log(await closedAt(0))`
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--expose-gc', '--input-type=module', '--eval', program],
    { encoding: 'utf8' },
  )
  expect({ stdout, stderr }).toEqual({ stdout: '2 true\n3 false\ntrue\n', stderr: '' })
})
