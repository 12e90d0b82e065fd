import { describe, expect, it } from 'vitest'
import type { Chunk } from '../../src/session/chunk.ts'
import { type MergePolicy, Session } from '../../src/session/session.ts'
import { note, refusalOf, says, texts, user } from './make.ts'

const start = Session.create('empty').append(user('go'))
const spent = (inputTokens: number) => ({ inputTokens })
const [a, b, c] = start
  .forks(['a', 'b', 'c'])
  .map((fork, i) => fork.append(says('ABC'.charAt(i), spent(10 ** i)))) as [Session, Session, Session]
const record = (session: Session) => session.chunks.at(-1) as Chunk<'merge'>

describe('a merge policy', () => {
  it('ours keeps the first side, theirs all the others', async () => {
    expect(texts(await a.merge([b, c], { policy: 'ours' }))).toEqual(['go', 'A'])
    expect(texts(await a.merge([b, c], { policy: 'theirs' }))).toEqual(['go', 'B', 'C'])
    expect(record(await a.merge(b, { policy: 'theirs' })).policy).toBe('theirs')
  })

  it('may be a function, which gets the shared history and each side’s own chunks', async () => {
    const merged = await a.merge([b, c], {
      policy(base, branches) {
        expect(texts(base)).toEqual(['go'])
        expect(branches.map(branch => branch.chunks.map(chunk => chunk.text))).toEqual([['A'], ['B'], ['C']])
        return [...(branches[2]?.chunks ?? []), ...(branches[0]?.chunks ?? [])]
      },
    })
    expect(texts(merged)).toEqual(['go', 'C', 'A'])
    expect(record(merged).policy).toBe('function')
  })

  it('may write new chunks, in its own time', async () => {
    const policy: MergePolicy = async (_, branches) => [
      { kind: 'assistant', text: `both: ${branches.map(branch => branch.chunks[0]?.text)}` },
    ]
    const merged = await a.merge(b, { policy, at: 5 })
    expect(merged.text).toBe('both: A,B')
    expect(merged.chunks.at(1)).toMatchObject({ at: 5 })
    expect(merged.verify().ok).toBe(true)
  })

  it('gets an empty session as the shared history of unrelated ones', async () => {
    await a.merge(Session.fromUserMessage('x'), {
      policy(base) {
        expect(base.length).toBe(0)
        return []
      },
    })
  })

  it('cannot duplicate a chunk by returning it twice', async () => {
    const policy: MergePolicy = (_, branches) =>
      branches.flatMap(branch => [...branch.chunks, ...branch.chunks])
    expect(texts(await a.merge(b, { policy }))).toEqual(['go', 'A', 'B'])
  })

  it.each([
    ['a chunk of a session that is not merged', () => [c.chunks.at(1) as Chunk]],
    ['a chunk of the shared history', () => [start.chunks.at(0) as Chunk]],
  ])('is refused %s', async (_, policy) => {
    const error = await refusalOf(a.merge(b, { policy }))
    expect(error.code).toBe('foreign-chunk')
    expect(error.message).toContain('return chunks of the branches, or new ones without an id')
  })

  it('is refused anything but an array of good chunks', async () => {
    expect((await refusalOf(a.merge(b, { policy: () => 'all' as never }))).message).toContain('not "all"')
    expect((await refusalOf(a.merge(b, { policy: async () => undefined as never }))).code).toBe(
      'invalid-argument',
    )
    const half: MergePolicy = () => [note('good'), { kind: 'note' } as never]
    expect((await refusalOf(a.merge(b, { policy: half }))).message).toContain(
      'merged chunk 1.name: is missing',
    )
    const boom = a.merge(b, {
      policy: () => {
        throw new Error('mine')
      },
    })
    await expect(boom).rejects.toThrow('mine')
  })
})

describe('the usage of a merged session', () => {
  it('counts shared history once', async () => {
    const paid = start.append(says('shared', spent(1000)))
    const [x, y] = paid.forks(2).map(fork => fork.append(says('own', spent(1)))) as [Session, Session]
    const merged = await x.merge(y)
    expect(merged.usage.inputTokens).toBe(1002)
    expect((await merged.merge([x, y, merged])).usage.inputTokens).toBe(1002)
    expect(record(merged).usage).toBeUndefined()
  })

  it('keeps what was spent on chunks that a policy left out', async () => {
    const ours = await a.merge([b, c], { policy: 'ours' })
    expect(ours.usage.inputTokens).toBe(111)
    expect(record(ours).usage?.inputTokens).toBe(110)
    expect((await a.merge([b, c], { policy: () => [] })).usage.inputTokens).toBe(111)
    expect((await a.merge([b, b], { policy: 'ours' })).usage.inputTokens).toBe(11)
  })

  it('counts a branch once that was left out first and merged after all', async () => {
    const ours = await a.merge([b, c], { policy: 'ours' })
    for (const merged of [await ours.merge(b), await b.merge(ours), await ours.merge([c, b])]) {
      expect(merged.usage.inputTokens).toBe(111)
      expect(merged.verify().ok).toBe(true)
      expect(Session.fromJSONL(merged.toJSONL()).verify().ok).toBe(true)
    }
    const nested = await b.merge(ours, { policy: 'ours' })
    expect(nested.usage.inputTokens).toBe(111)
    expect((await nested.merge([a, c])).usage.inputTokens).toBe(111)
  })

  it('keeps money that was spent without tokens', async () => {
    const image = start.fork('image').append(says('drawn', { cost: 0.04 }))
    expect((await a.merge(image, { policy: 'ours' })).usage.cost).toBe(0.04)
  })
})

describe('the placement of a merged session', () => {
  const local = start.to('local', '/work')
  const cloud = start.to('opensandbox', { image: 'x' })

  it('is the one that all sides share, or that only some have', async () => {
    expect((await local.fork().merge(local.fork())).placement).toEqual({ backend: 'local', spec: '/work' })
    expect((await local.merge(a)).placement?.backend).toBe('local')
    expect((await a.merge(start.to('local', '/work'))).placement?.backend).toBe('local')
  })

  it('is refused when sides are placed differently', async () => {
    const error = await refusalOf(local.merge(cloud))
    expect(error.code).toBe('placement-conflict')
    expect(error.message).toContain('(local /work and opensandbox {"image":"x"})')
    expect(error.message).toContain("merge with policy 'ours', 'theirs' or a function")
    expect((await refusalOf(local.merge(start.to('local', './other')))).code).toBe('placement-conflict')
    expect((await refusalOf(a.merge([local, cloud], { policy: 'theirs' }))).code).toBe('placement-conflict')
  })

  it('is the side’s that a policy chose', async () => {
    expect((await local.merge(cloud, { policy: 'ours' })).placement?.backend).toBe('local')
    expect((await local.merge(cloud, { policy: 'theirs' })).placement?.backend).toBe('opensandbox')
    const second: MergePolicy = (_, branches) => branches[1]?.chunks ?? []
    expect((await local.merge(cloud, { policy: second })).placement?.backend).toBe('opensandbox')
  })
})
