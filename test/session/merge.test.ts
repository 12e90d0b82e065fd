import { describe, expect, it } from 'vitest'
import type { Chunk } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { compressed, note, refusalOf, says, spoken, texts, user } from './make.ts'

const start = Session.create('empty').append(user('go'), says('ok'))
const last = (session: Session) => session.chunks.at(-1) as Chunk<'merge'>

describe('merge', () => {
  it('keeps the shared history once, then each branch’s own chunks, tagged with their branch', async () => {
    const [a, b, c] = start.forks(['a', 'b', 'c'])
    const ours = a.append(says('A1'), says('A2'))
    const merged = await ours.merge([b.append(says('B')), c.append(says('C'))], { at: 9, by: 'judge' })
    expect(texts(merged)).toEqual(['go', 'ok', 'A1', 'A2', 'B', 'C'])
    expect(merged.chunks.map(chunk => chunk.branch)).toEqual([
      undefined,
      undefined,
      'a',
      'a',
      'b',
      'c',
      undefined,
    ])
    expect(merged.branch).toBe('')
    expect(merged.verify()).toEqual({ ok: true, checked: 7 })
  })

  it('records branches, ancestor and policy, and keeps the first side’s chunks as they are', async () => {
    const ours = start.fork('a').append(says('A'))
    const theirs = start.fork('b').append(says('B'))
    const merged = await ours.merge(theirs, { at: 9, by: 'judge' })
    expect({ ...last(merged) }).toEqual({
      kind: 'merge',
      at: 9,
      by: 'judge',
      branches: [
        { session: ours.id, head: ours.head, branch: 'a', chunks: 1 },
        { session: theirs.id, head: theirs.head, branch: 'b', chunks: 1 },
      ],
      ancestor: start.head,
      policy: 'concat',
    })
    expect(merged.chunks.at(2)).toBe(ours.chunks.at(2))
    expect(merged.chunks.at(3)).toMatchObject({ text: 'B', origin: theirs.head })
  })

  it('joins branches with different fork points, each chunk once and in its order', async () => {
    const a = start.fork('a').append(says('A1'))
    const b = a.fork('b').append(says('B'))
    const c = start.append(says('C'))
    const longer = a.append(says('A2'))
    expect(texts(await longer.merge([b, c]))).toEqual(['go', 'ok', 'A1', 'A2', 'B', 'C'])
    expect(texts(await c.merge([b, longer]))).toEqual(['go', 'ok', 'C', 'A1', 'B', 'A2'])
  })

  it('does not repeat a branch that was merged before, in either direction', async () => {
    const a = start.fork('a').append(says('A'))
    const b = start.fork('b').append(says('B'))
    const once = await a.merge(b)
    expect(texts(await once.merge(b))).toEqual(['go', 'ok', 'A', 'B'])
    expect(texts(await b.merge(once))).toEqual(['go', 'ok', 'B', 'A'])
    expect(texts(await once.merge([once, await b.merge(a)]))).toEqual(['go', 'ok', 'A', 'B'])
    expect(texts(await once.merge(b.append(says('B2'))))).toEqual(['go', 'ok', 'A', 'B', 'B2'])
  })

  it('joins a session with itself into itself', async () => {
    const merged = await start.merge(start)
    expect(texts(merged)).toEqual(['go', 'ok'])
    expect(last(merged).branches.map(branch => branch.chunks)).toEqual([0, 0])
  })

  it('puts unrelated sessions one after the other', async () => {
    const merged = await start.merge([Session.fromUserMessage('elsewhere'), Session.create('empty')])
    expect(texts(merged)).toEqual(['go', 'ok', 'elsewhere'])
    expect(last(merged).ancestor).toBeNull()
    expect(texts(await Session.create('empty').merge(Session.create('empty')))).toEqual([])
  })

  it('finds the shared history of sessions that were read apart, and of sessions built apart', async () => {
    const read = (session: Session) => Session.fromJSONL(session.toJSONL())
    const a = read(start.fork('a').append(says('A')))
    const b = read(start.fork('b').append(says('B')))
    const merged = await a.merge(b)
    expect(texts(merged)).toEqual(['go', 'ok', 'A', 'B'])
    expect(last(merged).ancestor).toBe(start.head)
    const again = Session.create('empty').append(user('go'), says('ok'), says('new'))
    expect(texts(await a.merge(again))).toEqual(['go', 'ok', 'A', 'new'])
    expect((await start.diff(again)).shared).toBe(2)
  })

  it('ends on the innermost branch that all sides come from', async () => {
    const side = start.fork('side')
    const [x, y] = side.forks(['x', 'y'])
    expect((await x.merge(y)).branch).toBe('side')
    expect((await x.merge(start)).branch).toBe('')
    expect((await start.fork('sid').merge(x)).branch).toBe('')
  })

  it('refuses to merge nothing, and what is no session', async () => {
    expect((await refusalOf(start.merge([]))).code).toBe('merge-nothing')
    expect((await refusalOf(start.merge([]))).message).toContain('pass at least one other session')
    expect((await refusalOf(start.merge('b' as never))).message).toBe('Expected a Session, not "b".')
    expect((await refusalOf(start.merge([start, undefined as never]))).code).toBe('invalid-argument')
    expect((await refusalOf(start.merge(start, 'ours' as never))).message).toContain('not "ours"')
    expect((await refusalOf(start.merge(start, { policy: 'mine' as never }))).message).toContain('not "mine"')
  })
})

describe('a merge of a compressed branch', () => {
  it('still shows the summary in place of what it replaced, however often it is merged', async () => {
    const a = start.fork('a').append(says('A'))
    const b = start.fork('b').append(says('B1'), says('B2'))
    const once = await a.merge(b)
    const short = compressed(once, [3, 4], 'B in short')
    const shown = [
      'user: go',
      'assistant: ok',
      'assistant: A',
      'user: Summary of the conversation so far:\nB in short',
    ]
    expect(spoken(short)).toEqual(shown)
    const c = start.fork('c').append(note('quiet'))
    expect(spoken(await c.merge(short))).toEqual(shown)
    expect(spoken(await c.merge(await c.merge(short)))).toEqual(shown)
  })

  it('shows a summary at its own place when the policy left out what it replaced', async () => {
    const short = compressed(start.fork('a').append(says('A1'), says('A2')), [2, 3], 'A in short')
    const merged = await start.merge(short, {
      policy: (_, branches) => branches[1]?.chunks.filter(chunk => chunk.kind === 'compress') ?? [],
    })
    expect(spoken(merged).at(-1)).toBe('user: Summary of the conversation so far:\nA in short')
  })
})
