import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Places } from '../../src/run/place/places.ts'
import { filesIn } from '../../src/run/place/session-files.ts'
import type { Sandbox } from '../../src/sandbox/spec.ts'
import { Session, withFiles } from '../../src/session/session.ts'
import type { ToolEvidence } from '../../src/tool/tool-record.ts'
import { temporaryFolder } from './make.ts'

let folder: ReturnType<typeof temporaryFolder>
let places: Places
const project = () => join(folder.path, 'project')
const write = (path: string, text: string) => writeFileSync(join(project(), path), text)
const read = (path: string) => readFileSync(join(project(), path), 'utf8')

beforeEach(() => {
  folder = temporaryFolder()
  mkdirSync(project())
  write('shared.txt', 'one\ntwo\nthree\nfour\nfive\n')
  write('other.txt', 'other\n')
  places = new Places({ workspaces: join(folder.path, 'kept') })
})

afterEach(async () => {
  await places.close()
  folder[Symbol.dispose]()
})

/** What a tool call leaves behind: does something in the session's sandbox and records it. */
async function call(session: Session, work: (sandbox: Sandbox) => Promise<unknown>): Promise<Session> {
  const evidence = await captured(session, work)
  const { ranOn, before, tree, files } = evidence
  return session.append({
    kind: 'tool-result',
    callId: 'c',
    tool: 'work',
    outcome: { kind: 'value', value: null },
    ...(ranOn && { ranOn }),
    ...(before !== undefined && { before }),
    ...(tree !== undefined && { tree }),
    ...(files && { files }),
  })
}

async function captured(
  session: Session,
  work: (sandbox: Sandbox) => Promise<unknown>,
): Promise<ToolEvidence> {
  const capture = places.capture({ session, run: 'r' })
  await capture.run(async () => work(await capture.sandbox()))
  return capture.end()
}

const run = (command: string) => async (sandbox: Sandbox) => {
  const { exitCode } = await sandbox.exec(command).result
  expect(exitCode).toBe(0)
}
const writes = (path: string, text: string) => (sandbox: Sandbox) => sandbox.files.write(path, text)
const start = () => withFiles(Session.fromUserMessage('go').to('local', project()), filesIn(places))

describe('a call that may change files', () => {
  test('records the trees before and after it, and what it changed', async () => {
    const { before, tree, files, ranOn } = await captured(start(), writes('new/a.txt', 'A\n'))
    expect(files).toEqual([{ path: 'new/a.txt', change: 'added', patch: expect.stringContaining('+A') }])
    expect(before).not.toBe(tree)
    expect(ranOn).toMatchObject({ backend: 'local', cwd: project() })
  })

  test('sees what a command did, whatever it did', async () => {
    const session = await call(
      start(),
      run('rm other.txt && mkdir empty && echo six >> shared.txt && chmod 600 shared.txt'),
    )
    expect(session.chunks.at(-1)).toMatchObject({
      files: [
        { path: 'empty/', change: 'added' },
        { path: 'other.txt', change: 'deleted' },
        {
          path: 'shared.txt',
          change: 'modified',
          patch: expect.stringMatching(/new mode 100600\n(.*\n)*\+six/),
        },
      ],
    })
  })

  test('a file written through a link is the file it leads to', async () => {
    const first = await call(start(), run('mkdir real && ln -s real link'))
    const { files } = await captured(first, writes('link/a.txt', 'A'))
    expect(files).toMatchObject([{ path: 'real/a.txt', change: 'added' }])
  })

  test('a path that leads outside is refused, and what the call does besides is kept', async () => {
    const evidence = await captured(start(), async sandbox => {
      for (const path of ['../x', '/etc/passwd', 'a/../../x']) {
        await expect(sandbox.files.write(path, 'x')).rejects.toMatchObject({ code: 'path-outside' })
      }
      await sandbox.files.write('inside.txt', 'x')
    })
    expect(evidence.files).toMatchObject([{ path: 'inside.txt', change: 'added' }])
  })

  test('what changed while nobody worked is drift, and not the doing of the next call', async () => {
    const session = await call(start(), writes('a.txt', 'A'))
    write('other.txt', 'edited by a person\n')
    const command = await captured(session, run('echo B > b.txt'))
    expect(command.drift?.files).toMatchObject([{ path: 'other.txt', change: 'modified' }])
    expect(command.files).toMatchObject([{ path: 'b.txt', change: 'added' }])
    write('b.txt', 'edited again\n')
    const tool = await captured(session, writes('b.txt', 'C'))
    expect(tool.drift?.files).toMatchObject([{ path: 'b.txt', change: 'modified' }])
  })

  test('a file that the call itself wrote before its command is no drift', async () => {
    const session = await call(start(), writes('a.txt', 'A'))
    const evidence = await captured(session, async sandbox => {
      await sandbox.files.write('mine.txt', 'mine')
      await run('cat mine.txt > copy.txt')(sandbox)
    })
    expect(evidence.drift).toBeUndefined()
    expect(evidence.files?.map(file => file.path)).toEqual(['copy.txt', 'mine.txt'])
  })

  test('calls of sessions that share a folder take turns, and those inside one do not wait for it', async () => {
    const session = start()
    const order: string[] = []
    const outer = captured(session, async sandbox => {
      order.push('outer')
      await captured(session, async inner => {
        order.push('inner')
        await inner.files.write('inner.txt', 'x')
      })
      await sandbox.files.write('outer.txt', 'x')
      order.push('outer done')
    })
    const other = captured(session, async () => order.push('other'))
    await Promise.all([outer, other])
    expect(order).toEqual(['outer', 'inner', 'outer done', 'other'])
  })
})

test('files are not kept inside the folder that they are kept of, but in its own corner', async () => {
  const inside = new Places({ workspaces: join(project(), 'kept') })
  await expect(inside.open({ session: start() })).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining('OPENRATH_HOME'),
  })
  await inside.close()
  const corner = new Places({ workspaces: join(project(), '.openrath', 'kept') })
  expect((await corner.open({ session: start() })).sandbox.hostPath).toBe(project())
  await corner.close()
})

describe('a fork', () => {
  test('has files of its own, and the folder that was handed over stays as it is', async () => {
    const [left, right] = start().forks(['left', 'right'])
    const [a, b] = await Promise.all([
      call(left, run('echo left > shared.txt')),
      call(right, run('echo right > shared.txt && test "$(cat other.txt)" = other')),
    ])
    expect(read('shared.txt')).toMatch(/^one\n/)
    const text = async (session: Session) => {
      const { sandbox } = await places.open({ session })
      return new TextDecoder().decode(await sandbox.files.read('shared.txt'))
    }
    expect([await text(a), await text(b)]).toEqual(['left\n', 'right\n'])
  })

  test('begins with the files of the call before it, not with what its parent does meanwhile', async () => {
    const parent = await call(start(), writes('a.txt', 'before'))
    const fork = parent.fork()
    await call(parent, writes('a.txt', 'after'))
    const { sandbox } = await places.open({ session: fork })
    expect(new TextDecoder().decode(await sandbox.files.read('a.txt'))).toBe('before')
  })

  test('made before any call begins with what was there when the first call came', async () => {
    const session = start()
    const fork = session.fork()
    await call(session, writes('shared.txt', 'changed'))
    const { sandbox } = await places.open({ session: fork })
    expect(new TextDecoder().decode(await sandbox.files.read('shared.txt'))).toMatch(/^one\n/)
  })

  test('begins with the same files in another process, whatever was done in the folder since', async () => {
    const session = start()
    const fork = session.fork()
    await call(session, writes('shared.txt', 'changed'))
    const later = new Places({ workspaces: join(folder.path, 'kept') })
    const { sandbox } = await later.open({ session: Session.fromJSONL(fork.toJSONL()) })
    expect(new TextDecoder().decode(await sandbox.files.read('shared.txt'))).toMatch(/^one\n/)
    await later.close()
  })

  test('that shares works in the files of its parent', async () => {
    await call(start().fork({ workspace: 'shared' }), writes('a.txt', 'A'))
    expect(read('a.txt')).toBe('A')
  })

  test('is laid out again when its run has ended and it goes on', async () => {
    const fork = await call(start().fork(), writes('a.txt', 'A'))
    await places.leave('r')
    const { sandbox } = await places.open({ session: fork })
    expect(new TextDecoder().decode(await sandbox.files.read('a.txt'))).toBe('A')
  })

  test('leaves no folder behind when its run has ended', async () => {
    const session = start().fork()
    await call(session, writes('a.txt', 'A'))
    const { sandbox } = await places.open({ session })
    await places.leave('r')
    expect(existsSync(sandbox.hostPath as string)).toBe(false)
  })
})

describe('a rewind', () => {
  test('has the files of its time, and the folder keeps those of now', async () => {
    const first = await call(start(), writes('a.txt', 'first'))
    const second = await call(first, writes('a.txt', 'second'))
    const back = await call(
      second.rewind(first.length - 1),
      run('test "$(cat a.txt)" = first && echo again > b.txt'),
    )
    expect(read('a.txt')).toBe('second')
    expect(existsSync(join(project(), 'b.txt'))).toBe(false)
    expect(back.chunks.at(-1)).toMatchObject({ files: [{ path: 'b.txt', change: 'added' }] })
  })
})

describe('a merge', () => {
  test('joins the files of its branches by lines and brings them to the folder', async () => {
    const [left, right] = start().forks(2) as [Session, Session]
    const merged = await (await call(left, run('sed -i s/one/ONE/ shared.txt'))).merge(
      await call(right, run('sed -i s/five/FIVE/ shared.txt && echo new > new.txt')),
    )
    expect(read('shared.txt')).toBe('ONE\ntwo\nthree\nfour\nFIVE\n')
    expect(read('new.txt')).toBe('new\n')
    const { before } = await captured(merged, run('true'))
    expect(before).toBe((merged.chunks.at(-1) as { tree?: string }).tree)
  })

  test('that conflicts is refused by path, and nothing is written', async () => {
    const [left, right] = start().forks(2) as [Session, Session]
    const [a, b] = [
      await call(left, writes('shared.txt', 'L\n')),
      await call(right, writes('shared.txt', 'R\n')),
    ]
    await expect(a.merge(b)).rejects.toMatchObject({
      code: 'merge-conflict',
      data: { conflicts: [{ path: 'shared.txt', kind: 'content' }] },
    })
    expect(read('shared.txt')).toMatch(/^one\n/)
  })

  test('records who settled a conflict and how', async () => {
    const [left, right] = start().forks(2) as [Session, Session]
    const [a, b] = [
      await call(left, writes('shared.txt', 'L\n')),
      await call(right, writes('shared.txt', 'R\n')),
    ]
    const merged = await a.merge(b, {
      onConflict: ({ ours, theirs }) => ({
        content: `${new TextDecoder().decode(ours ?? undefined)}${new TextDecoder().decode(theirs ?? undefined)}`,
        by: 'judge',
      }),
    })
    expect(read('shared.txt')).toBe('L\nR\n')
    expect(merged.chunks.at(-1)).toMatchObject({
      conflicts: [{ path: 'shared.txt', kind: 'content', settled: 'written', by: 'judge' }],
    })
  })

  test('keeps what a person edited in the folder meanwhile', async () => {
    const fork = await call(start().fork(), run('sed -i s/one/ONE/ shared.txt'))
    write('other.txt', 'a person was here\n')
    await start().merge(fork)
    expect([read('other.txt'), read('shared.txt')]).toEqual([
      'a person was here\n',
      'ONE\ntwo\nthree\nfour\nfive\n',
    ])
  })

  test('of branches of a branch stays off the folder until that one is merged', async () => {
    const outer = start().fork('outer')
    const [left, right] = outer.forks(2) as [Session, Session]
    const inner = await (await call(left, writes('l.txt', 'L'))).merge(
      await call(right, writes('r.txt', 'R')),
    )
    expect(existsSync(join(project(), 'l.txt'))).toBe(false)
    await start().merge(await call(inner, run('test -e l.txt && test -e r.txt')))
    expect([read('l.txt'), read('r.txt')]).toEqual(['L', 'R'])
  })
})

test('a diff compares the files of both sides with those they began with', async () => {
  const [left, right] = start().forks(2) as [Session, Session]
  const diff = await (await call(left, writes('a.txt', 'L'))).diff(await call(right, run('rm other.txt')))
  expect(diff.files).toMatchObject([
    { path: 'a.txt', change: 'added', side: 'ours' },
    { path: 'other.txt', change: 'deleted', side: 'theirs' },
  ])
})

test('a folder can be given back as a session knows it', async () => {
  const session = await call(start(), writes('a.txt', 'A'))
  rmSync(join(project(), 'a.txt'))
  const found = await places.restore({ session })
  expect(read('a.txt')).toBe('A')
  expect(found).toBeDefined()
})
