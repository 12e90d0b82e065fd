import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createRuntime } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import { temporaryFolder } from '../../sandbox/make.ts'
import { counted, sandboxOf } from './make.ts'

// OpenRath 1.2, list S: what its suite asserts about sessions. A name that ends in "differs" is where we decided otherwise, with the reason.

const ask = (text = 'go') => Session.fromUserMessage(text)
const texts = (session: Session) =>
  session.chunks.filter(chunk => chunk.kind !== 'merge').map(chunk => chunk.text)

describe('S: session core', () => {
  it('S1 create stamps a lineage without parents, and no place', () => {
    for (const kind of ['user', 'system'] as const) {
      const session = Session.create(kind, 'hello')
      expect(session.chunks.at(0)).toMatchObject({ kind, text: 'hello' })
      expect(session.lineage).toMatchObject({ operation: 'create', parents: [] })
      expect(session.placement).toBeUndefined()
    }
  })

  it('S2 an empty session has no chunks; that it is stamped differs: every session says where it comes from', () => {
    const session = Session.create('empty')
    expect([session.length, session.lineage.operation]).toEqual([0, 'create'])
  })

  it('S3 an unknown kind is refused', () => {
    expect(() => Session.create('robot' as never)).toThrow('user, system or empty, not "robot"')
  })

  it('S4 a fork has the same chunks, its source as parent, and says that it is a fork', () => {
    const source = ask().user('more')
    const fork = source.fork()
    expect(fork.chunks.slice()).toEqual(source.chunks.slice())
    expect(fork.lineage).toMatchObject({ operation: 'fork', parents: [source.id] })
  })

  it('S5 a detached session has no parents', () => {
    const source = ask()
    expect(source.detach().lineage).toMatchObject({ operation: 'detach', parents: [] })
    expect(texts(source.detach())).toEqual(texts(source))
  })

  it('S6 merge keeps the order, self then other; that the shared history stands once differs: a model must not read it twice', async () => {
    expect(texts(await ask('a').merge(ask('b')))).toEqual(['a', 'b'])
    const base = ask('base')
    const merged = await base.fork('l').user('left').merge(base.fork('r').user('right'))
    expect(texts(merged)).toEqual(['base', 'left', 'right'])
  })

  it('S7 sessions without a place merge into one without', async () => {
    expect((await ask('a').merge(ask('b'))).placement).toBeUndefined()
  })

  it('S8 merged forks work in the sandbox they shared; that nothing counts references differs: the runtime owns sandboxes, sessions are values', async () => {
    const { opened, places } = counted()
    const placed = ask().to('local')
    const first = await sandboxOf(places, placed)
    const merged = await placed.fork('a').user('1').merge(placed.fork('b').user('2'))
    expect(await sandboxOf(places, merged)).toBe(first)
    expect(opened).toHaveLength(1)
    await places.close()
  })

  it("S9 which place wins has to be said; that the first wins silently differs: the second's files would be lost", async () => {
    const [a, b] = [ask('a').to('local', '/a'), ask('b').to('local', '/b')]
    await expect(a.merge(b)).rejects.toMatchObject({ code: 'placement-conflict' })
    expect((await a.merge(b, { policy: 'ours' })).placement?.spec).toBe('/a')
    expect((await a.merge(b, { policy: 'theirs' })).placement?.spec).toBe('/b')
  })

  it('S10 one without a place goes along with one that has; that the result has it too differs: its chunks are about those files', async () => {
    expect((await ask('a').merge(ask('b').to('local', '/b'))).placement?.spec).toBe('/b')
  })

  it('S11 different backends are refused', async () => {
    const merging = ask('a').to('local').merge(ask('b').to('docker'))
    await expect(merging).rejects.toMatchObject({ code: 'placement-conflict' })
  })

  it('S12 usage adds up, and a side without any changes nothing', async () => {
    const spent = (tokens: number) =>
      ask().append({ kind: 'assistant', text: 'x', usage: { inputTokens: tokens } })
    expect((await spent(3).merge(spent(4))).usage.totalTokens).toBe(7)
    expect((await spent(3).merge(ask())).usage.totalTokens).toBe(3)
    expect((await ask().merge(spent(3))).usage.totalTokens).toBe(3)
  })

  it('S13 the parents of a merge are in order', async () => {
    const [a, b, c] = [ask('a'), ask('b'), ask('c')]
    expect((await a.merge([b, c])).lineage.parents).toEqual([a.id, b.id, c.id])
  })

  it('S14 to() gives another session; that it is not the same object differs: nothing ever changes a session', () => {
    const session = ask()
    const placed = session.to('local')
    expect(placed).not.toBe(session)
    expect([session.placement, placed.placement?.backend]).toEqual([undefined, 'local'])
  })

  it('S15 moving on leaves the old place open; that it is not closed differs: the old session is still there and still valid', async () => {
    using folder = temporaryFolder()
    const { closed, places } = counted()
    const before = ask().to('local')
    const old = await sandboxOf(places, before)
    await sandboxOf(places, before.to('local', folder.path))
    expect(closed).toEqual([])
    expect(await sandboxOf(places, before)).toBe(old)
    await places.close()
  })

  it('S16 a path is the folder to work in, and it survives', async () => {
    using folder = temporaryFolder()
    const { places } = counted()
    const { hostPath } = await sandboxOf(places, ask().to('local', folder.path))
    expect(hostPath ?? '').toContain(folder.path)
    await places.close()
    expect(existsSync(folder.path)).toBe(true)
  })

  it('S17 a place is opened when first asked for, and once', async () => {
    const { opened, places } = counted()
    const session = ask().to('local')
    expect(opened).toHaveLength(0)
    expect(await sandboxOf(places, session)).toBe(await sandboxOf(places, session))
    expect(opened).toHaveLength(1)
    await places.close()
  })

  it('S18 and S19 a session is not bound to a handle: being placed again at the same place is the same sandbox; differs, as S14', async () => {
    using folder = temporaryFolder()
    const { opened, places } = counted()
    const session = ask().to('local', folder.path)
    expect(await sandboxOf(places, session.to('local', folder.path))).toBe(await sandboxOf(places, session))
    expect(opened).toHaveLength(1)
    await places.close()
  })

  it('S20 two sessions at one place share its sandbox, which closes once, with the runtime', async () => {
    using folder = temporaryFolder()
    const { closed, places } = counted()
    const sandbox = await sandboxOf(places, ask('a').to('local', folder.path))
    expect(await sandboxOf(places, ask('b').to('local', folder.path))).toBe(sandbox)
    await places.close()
    expect(closed).toEqual([sandbox.id])
  })

  it('S21 what is closed says so', async () => {
    const { places } = counted()
    const { sandbox } = await places.open({ session: ask().to('local') })
    await places.close()
    await expect(places.open({ session: ask().to('local') })).rejects.toMatchObject({
      code: 'sandbox-closed',
    })
    await expect(sandbox.files.list('.')).rejects.toMatchObject({ code: 'sandbox-closed' })
  })

  it('S22 a scope opens and closes, and the session keeps its target; that the scope is the runtime differs, as S8', async () => {
    const { closed, backend } = counted()
    const session = ask().to('local')
    {
      await using runtime = createRuntime({ store: 'memory:', sandboxes: [backend] })
      await runtime.places.open({ session })
      expect(closed).toHaveLength(0)
    }
    expect(closed).toHaveLength(1)
    expect(session.placement?.backend).toBe('local')
  })

  it('S23 a fork of a session whose place is not open yet has the same target', () => {
    const placed = ask().to('local', './')
    expect(placed.fork().placement).toEqual(placed.placement)
  })
})
