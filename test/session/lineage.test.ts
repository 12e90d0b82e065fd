import { describe, expect, expectTypeOf, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { note, says } from './make.ts'

const options = { by: 'Review/writer', at: 7, extras: { run: 'r1' } }
const recorded = { by: 'Review/writer', at: 7, extras: { run: 'r1' } }

it('forks by label are as many as the labels, for the compiler too', () => {
  const start = Session.fromUserMessage('hi')
  expectTypeOf(start.forks(['a', 'b'])).toEqualTypeOf<[Session, Session]>()
  expectTypeOf(start.forks(2)).toEqualTypeOf<Session[]>()
  const [quick, careful] = start.forks(['quick', 'careful'])
  expect([quick.branch, careful.branch]).toEqual(['quick', 'careful'])
})

describe('lineage', () => {
  it('starts with a session made from nothing', () => {
    const made = [
      Session.fromUserMessage('hi', options),
      Session.fromAgentPrompt('Be brief.', options),
      Session.create('user', 'hi', options),
      Session.create('system', 'Be brief.', options),
      Session.create('empty', undefined, options),
    ]
    for (const session of made)
      expect(session.lineage).toEqual({ parents: [], operation: 'create', ...recorded })
    expect(made.map(session => session.chunks.at(0)?.kind)).toEqual([
      'user',
      'system',
      'user',
      'system',
      undefined,
    ])
  })

  it('names the parent and the operation of every step', async () => {
    const start = Session.fromUserMessage('hi')
    expect(start.append(note('a')).lineage).toMatchObject({
      parents: [start.id],
      operation: 'append',
      extras: {},
    })
    expect(start.user('more').lineage).toMatchObject({ parents: [start.id], operation: 'append' })
    expect(start.to('local', './', options).lineage).toEqual({
      parents: [start.id],
      operation: 'to',
      ...recorded,
    })
    expect(start.fork('a').lineage).toMatchObject({ parents: [start.id], operation: 'fork', label: 'a' })
    const shared = start.fork({ label: 'b', workspace: 'shared', ...options })
    expect(shared.lineage).toEqual({
      parents: [start.id],
      operation: 'fork',
      label: 'b',
      lane: `~${shared.id}`,
      ...recorded,
      extras: { run: 'r1', workspace: 'shared' },
    })
    expect(start.detach(options).lineage).toEqual({ parents: [], operation: 'detach', ...recorded })
    const [a, b] = start.forks(['a', 'b'])
    expect((await a.merge(b, { ...options, label: 'joined' })).lineage).toEqual({
      parents: [a.id, b.id],
      operation: 'merge',
      label: 'joined',
      ...recorded,
      // The forks may never be kept: then this is what it came from.
      extras: { ...recorded.extras, since: start.id },
    })
  })

  it('gives every session an id of its own, and detach the same history', () => {
    const start = Session.fromUserMessage('hi')
    const made = [start, start.fork('a'), start.detach(), start.rewind(0), start.append(), start.to('local')]
    expect(new Set(made.map(session => session.id)).size).toBe(made.length)
    expect([start.detach().head, start.detach().state]).toEqual([start.head, start.state])
  })

  it('puts the producer of a placement on its chunk too', () => {
    expect(Session.create('empty').to('local', undefined, options).chunks.at(0)).toMatchObject({
      by: options.by,
      at: 7,
    })
  })

  it('numbers the forks of a value and keeps labels as they are, slashes included', () => {
    const start = Session.fromUserMessage('hi')
    expect(start.forks(2).map(fork => fork.branch)).toEqual(['#0', '#1'])
    expect(start.fork().branch).toBe('#2')
    const deep = start.fork('a/b~c').fork('d').fork()
    expect(deep.branch).toBe('a~1b~0c/d/#0')
    expect(deep.append(note('x')).chunks.at(-1)).toMatchObject({ branch: 'a~1b~0c/d/#0' })
    expect('branch' in (start.append(note('x')).chunks.at(-1) as object)).toBe(false)
    expect(start.forks(0)).toEqual([])
  })

  it('gives a merge policy the very sessions that are merged, so that their forks stay numbered', async () => {
    const [a, b] = Session.fromUserMessage('go').forks(2) as [Session, Session]
    a.fork()
    await a.append(says('A')).merge(b, {
      policy(base, branches) {
        expect(branches.map(branch => branch.branch)).toEqual(['#0', '#1'])
        expect(branches[1]?.session).toBe(b)
        expect(base.length).toBe(1)
        return []
      },
    })
  })

  it('is what a session shows of itself as JSON', () => {
    const session = Session.fromUserMessage('hi', { at: 3 }).fork({ label: 'a', at: 4 })
    expect(JSON.parse(JSON.stringify(session))).toEqual({
      id: session.id,
      head: session.head,
      branch: 'a',
      length: 1,
      lineage: {
        parents: [session.lineage.parents[0]],
        operation: 'fork',
        label: 'a',
        lane: session.id,
        at: 4,
        extras: {},
      },
    })
  })
})
