import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Agent } from '../../../src/flow/agent.ts'
import { foldAt } from '../../../src/session/chain.ts'
import { packsNamed } from '../../../src/session/fold.ts'
import { Session, valueFrom } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { scripted } from '../../../src/testing/scripted.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { Machines, publish, runs, worker, writes } from './make.ts'

let server: PostgresServer | undefined
beforeAll(async () => {
  server = await startPostgres({ fsync: false })
})
afterAll(() => server?.stop())

/** A store for the first machine, and what the second opens when the first is done. */
async function stores(kind: string, machines: Machines): Promise<[string, () => string]> {
  if (kind === 'SQLite') {
    return [`sqlite:${machines.pathOf('one', 'rath.db')}`, () => machines.copyStore('one', 'two')]
  }
  const url = await (server as PostgresServer).createDatabase()
  return [url, () => url]
}

const text = (path: string) => readFileSync(path, 'utf8')

describe.each(['SQLite', 'PostgreSQL'])('on a second machine with the store alone, %s', kind => {
  it('files of a session are there, can be forked, merged and compared, and verify agrees', async () => {
    await using machines = new Machines()
    const [first, second] = await stores(kind, machines)
    writeFileSync(machines.pathOf('one', 'project', 'given.txt'), 'given\n')
    const one = machines.runtime('one', first)
    const start = Session.fromUserMessage('go').to('local', machines.pathOf('one', 'project'))
    const base = await one.run(
      worker('base', [runs('mkdir -p a/b none; : > a/empty; echo base > a/b/base.txt; chmod 750 a')]),
      start,
    )
    const [left, right] = base.forks(['left', 'right'])
    const ours = await one.run(worker('ours', [writes('ours.txt', 'ours\n')]), left)
    const theirs = await one.run(worker('theirs', [writes('a/b/base.txt', 'theirs\n')]), right)
    await one.close()

    const two = machines.runtime('two', second())
    const [a, b] = [await two.sessions.get(ours.id), await two.sessions.get(theirs.id)]
    await two.places.bring([foldAt(valueFrom(a).tip).tree], foldAt(valueFrom(a).tip).packs)
    // Nothing is missing that git would look for, also what is empty.
    const objects = machines.pathOf('two', 'kept', 'objects')
    const fsck = spawnSync('git', ['--git-dir', objects, 'fsck', '--strict', '--no-dangling'], {
      encoding: 'utf8',
    })
    if (!fsck.error) expect([fsck.stdout, fsck.status]).toEqual(['', 0])
    expect(a.verify()).toMatchObject({ ok: true })
    expect((await a.diff(b)).files.map(({ path, side }) => `${side} ${path}`)).toEqual([
      'ours ours.txt',
      'theirs a/b/base.txt',
    ])
    const folder = machines.pathOf('two', 'out')
    await two.checkout(a, folder)
    expect(readdirSync(folder).sort()).toEqual(['a', 'given.txt', 'none', 'ours.txt'])
    expect([text(join(folder, 'given.txt')), text(join(folder, 'a/b/base.txt'))]).toEqual([
      'given\n',
      'base\n',
    ])
    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o750)
    // A branch of its own continues there, in a folder that is laid out from the store.
    const more = await two.run(
      worker('more', [runs('cat a/b/base.txt > more.txt; echo more >> more.txt')]),
      b,
    )
    await two.checkout(more, machines.pathOf('two', 'more'))
    expect(text(machines.pathOf('two', 'more', 'more.txt'))).toBe('theirs\nmore\n')
    expect(await two.sessions.get(more.id).then(session => session.verify())).toMatchObject({ ok: true })
  })

  it('a run that waited for an answer is resumed, with the files as it left them', async () => {
    await using machines = new Machines()
    const [first, second] = await stores(kind, machines)
    const made = () =>
      new Agent('Work.', {
        name: 'release',
        tools: [publish],
        model: scripted([
          { toolCalls: [writes('notes.md', '# Notes\n') as never] },
          { toolCalls: [{ name: 'publish', args: {} }] },
          { toolCalls: [runs('wc -l < notes.md > lines.txt') as never] },
          'Done.',
        ]),
      })
    const one = machines.runtime('one', first)
    const start = Session.fromUserMessage('go').to('local', machines.pathOf('one', 'project'))
    const pending = one.run(made(), start, { id: 'release' })
    await expect(pending).rejects.toMatchObject({ code: 'run-waiting' })
    await one.close()

    const two = machines.runtime('two', second())
    const [question] = await two.approvals('release')
    await two.decide('release', question?.approval as string, { verdict: 'approved', by: 'ada' })
    const movedTo = machines.pathOf('two', 'project')
    const out = await two.resume('release', made(), { movedTo })
    expect([text(join(movedTo, 'notes.md')), text(join(movedTo, 'lines.txt')).trim()]).toEqual([
      '# Notes\n',
      '1',
    ])
    expect(out.verify()).toMatchObject({ ok: true })
  })
})

describe('what is sent to the store', () => {
  it('is what a call changed, and every chunk names all packs that its files need', async () => {
    await using machines = new Machines()
    const url = `sqlite:${machines.pathOf('one', 'rath.db')}`
    const project = machines.pathOf('one', 'project')
    for (let i = 0; i < 300; i++) writeFileSync(join(project, `f${i}`), randomBytes(1500).toString('hex'))
    const runtime = machines.runtime('one', url)
    const start = Session.fromUserMessage('go').to('local', project)
    const turns = Array.from({ length: 30 }, (_, i) => [writes('f1', `edit ${i}`)])
    const out = await runtime.run(worker('w', ...turns), start)
    const store = await runtime.store
    const named = out.chunks.filter(chunk => chunk.kind === 'tool-result').map(packsNamed)
    expect(named.every(packs => packs.length > 0 && packs.length <= 13)).toBe(true)
    const sizes = await Promise.all(
      [...new Set(named.flat())].map(async id => (await store.blobs.get(id)).length),
    )
    const [whole = 0, ...others] = sizes.sort((a, b) => b - a)
    expect(whole).toBeGreaterThan(400_000)
    // The tree of 300 entries is most of it: 300 names and ids.
    expect(Math.max(...others)).toBeLessThan(40_000)

    // Another session in the same folder, in another process, begins where this one was.
    await runtime.close()
    const again = machines.runtime('one', url)
    const next = await again.run(worker('w', [writes('f2', 'once')]), start.user('again'))
    const known = new Set(named.flat())
    const fresh = next.chunks.flatMap(chunk => packsNamed(chunk).filter(id => !known.has(id)))
    const bytes = await Promise.all(fresh.map(async id => (await (await again.store).blobs.get(id)).length))
    expect(Math.max(...bytes)).toBeLessThan(40_000)
  })

  it('stays as long as a session or a run names it, and goes with the last, whatever is collected when', async () => {
    await using machines = new Machines()
    const url = `sqlite:${machines.pathOf('one', 'rath.db')}`
    const runtime = machines.runtime('one', url)
    const start = Session.fromUserMessage('go').to('local', machines.pathOf('one', 'project'))
    const first = await runtime.run(worker('w', [writes('a', 'first')]), start)
    const second = await runtime.run(worker('w', [writes('b', 'second')]), first)
    await runtime.gc({ olderThan: 0 })
    const store = await runtime.store
    const packs = packsNamed(second.chunks.findLast(chunk => chunk.kind === 'tool-result') as never)
    expect(packs.length).toBeGreaterThan(0)
    for (const id of packs) expect(await store.blobs.has(id)).toBe(true)
    await runtime.close()
    const other = machines.runtime('two', machines.copyStore('one', 'two'))
    await other.checkout(await other.sessions.get(second.id), machines.pathOf('two', 'out'))
    expect(readdirSync(machines.pathOf('two', 'out')).sort()).toEqual(['a', 'b'])
  })

  it('is sent again where the store has lost it, whatever this machine remembers', async () => {
    await using machines = new Machines()
    const url = `sqlite:${machines.pathOf('one', 'rath.db')}`
    const project = machines.pathOf('one', 'project')
    writeFileSync(join(project, 'given.txt'), 'given')
    const start = Session.fromUserMessage('go').to('local', project)
    const first = machines.runtime('one', url)
    await first.run(worker('w', [writes('a', 'first')]), start)
    await first.close()
    {
      using database = new DatabaseSync(machines.pathOf('one', 'rath.db'))
      database.exec('DELETE FROM blob')
    }
    const again = machines.runtime('one', url)
    const out = await again.run(worker('w', [writes('b', 'second')]), start.user('again'))
    await again.close()
    const two = machines.runtime('two', machines.copyStore('one', 'two'))
    await two.checkout(await two.sessions.get(out.id), machines.pathOf('two', 'out'))
    expect(readdirSync(machines.pathOf('two', 'out')).sort()).toEqual(['a', 'b', 'given.txt'])
  })

  it('is left alone by a collection once somebody has said that it is about to be named', async () => {
    await using machines = new Machines()
    const path = machines.pathOf('one', 'rath.db')
    await using store = await openStore(`sqlite:${path}`)
    const [wanted, other] = [await store.blobs.put('wanted'), await store.blobs.put('other')]
    {
      using database = new DatabaseSync(path)
      database.exec('UPDATE blob SET written = 0')
    }
    expect(await store.blobs.keep?.([wanted, '0'.repeat(64)])).toBe(1)
    expect(await store.gc()).toMatchObject({ blobs: 1 })
    expect([await store.blobs.has(wanted), await store.blobs.has(other)]).toEqual([true, false])
  })

  it('does not hold a file in which a secret stands: it stays on the machine that has it', async () => {
    await using machines = new Machines()
    const secret = 'sk-a-secret-that-nobody-else-has'
    const url = `sqlite:${machines.pathOf('one', 'rath.db')}`
    const store = await openStore(url, { secrets: { API_KEY: secret } })
    const project = machines.pathOf('one', 'project')
    writeFileSync(join(project, '.env'), `API_KEY=${secret}\n`)
    const { createRuntime } = await import('../../../src/run/runtime.ts')
    const runtime = createRuntime({ store, workspaces: machines.pathOf('one', 'kept') })
    const start = Session.fromUserMessage('go').to('local', project)
    const out = await runtime.run(worker('w', [writes('a', 'first')]), start)
    await runtime.close()
    await store.close()
    const two = machines.runtime('two', machines.copyStore('one', 'two'))
    const folder = machines.pathOf('two', 'out')
    await two.checkout(await two.sessions.get(out.id), folder)
    expect([existsSync(join(folder, 'a')), existsSync(join(folder, '.env'))]).toEqual([true, false])
  })

  it('is nothing where the store ends with the process', async () => {
    await using machines = new Machines()
    const runtime = machines.runtime('one', 'memory:')
    const start = Session.fromUserMessage('go').to('local', machines.pathOf('one', 'project'))
    const out = await runtime.run(worker('w', [writes('a', 'first')]), start)
    expect(out.chunks.flatMap(chunk => packsNamed(chunk))).toEqual([])
  })
})
