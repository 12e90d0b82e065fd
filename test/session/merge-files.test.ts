import { describe, expect, it } from 'vitest'
import { digestOf } from '../../src/base/digest.ts'
import type { JoinRequest, SessionFiles } from '../../src/session/files.ts'
import { Session, withFiles } from '../../src/session/session.ts'
import { refusalOf } from './make.ts'

const tree = (name: string) => digestOf(name)
const wrote = (before: string, after: string) =>
  ({
    kind: 'tool-result',
    callId: 'c',
    tool: 'write',
    outcome: { kind: 'value', value: null },
    before: tree(before),
    tree: tree(after),
  }) as const
const start = Session.fromUserMessage('go').to('local', './')
const [left, right] = start.forks(['left', 'right'])

/** The sessions as they come out of a runtime, and what is asked of its files. */
function joining(): { asked: JoinRequest[]; start: Session; left: Session; right: Session } {
  const asked: JoinRequest[] = []
  const port: SessionFiles = {
    join: async request => {
      asked.push(request)
      return { tree: tree('joined'), conflicts: [{ path: 'a', kind: 'content', settled: 'ours' }] }
    },
    changes: async (from, to) => [{ path: `${from === to}`, change: 'modified' }],
  }
  return { asked, start: withFiles(start, port), left: withFiles(left, port), right: withFiles(right, port) }
}

describe('a merge of sessions with files', () => {
  it('joins the trees from where the branches began and records the result', async () => {
    const { asked, left, right } = joining()
    const merged = await left.append(wrote('base', 'L')).merge(right.append(wrote('base', 'R')))
    expect(asked).toMatchObject([
      {
        base: undefined,
        found: tree('base'),
        into: '',
        sides: [{ tree: tree('L') }, { tree: tree('R') }],
        onConflict: 'refuse',
      },
    ])
    expect(merged.chunks.at(-1)).toMatchObject({
      kind: 'merge',
      tree: tree('joined'),
      conflicts: [{ path: 'a', kind: 'content', settled: 'ours' }],
    })
  })

  it('begins from the tree of the shared history when that has one', async () => {
    const { asked, start } = joining()
    const [a, b] = start.append(wrote('older', 'shared')).forks(2) as [Session, Session]
    await a.append(wrote('drifted', 'A')).merge(b)
    expect(asked[0]).toMatchObject({
      base: tree('shared'),
      sides: [{ tree: tree('A') }, { tree: tree('shared') }],
    })
  })

  it('takes only the files of the sides whose chunks it takes', async () => {
    const { asked, left, right } = joining()
    const [a, b] = [left.append(wrote('base', 'L')), right.append(wrote('base', 'R'))]
    await a.merge(b, { policy: 'ours' })
    await a.merge(b, { policy: 'theirs' })
    expect(asked.map(request => request.sides.map(side => side.tree))).toEqual([[tree('L')], [tree('R')]])
  })

  it('leaves the state as it is, whatever the joined tree', async () => {
    const { left, right } = joining()
    const a = left.append(wrote('base', 'L'))
    const merged = await a.merge(right)
    const other = { join: async () => ({ tree: tree('other'), conflicts: [] }), changes: async () => [] }
    const again = await withFiles(a, other).merge(right)
    expect(again.chunks.at(-1)).toMatchObject({ tree: tree('other') })
    expect(again.state).toBe(merged.state)
  })

  it('passes on how conflicts are settled, and refuses what is no way to settle one', async () => {
    const { asked, left, right } = joining()
    await left.append(wrote('base', 'L')).merge(right, { onConflict: 'markers' })
    expect(asked[0]?.onConflict).toBe('markers')
    const error = await refusalOf(left.merge(right, { onConflict: 'mine' as 'ours' }))
    expect(error.message).toContain('"mine"')
  })
})

describe('where files cannot be read', () => {
  it('one changed side is the result, and two are refused', async () => {
    const a = left.append(wrote('base', 'L'))
    expect((await a.merge(right)).chunks.at(-1)).toMatchObject({ tree: tree('L') })
    expect((await a.merge(right.append(wrote('base', 'base')))).chunks.at(-1)).toMatchObject({
      tree: tree('L'),
    })
    const error = await refusalOf(a.merge(right.append(wrote('base', 'R'))))
    expect(error.code).toBe('merge-conflict')
  })

  it('sessions without files merge as ever', async () => {
    expect((await left.merge(right)).chunks.at(-1)).not.toHaveProperty('tree')
  })
})

describe('a diff of sessions with files', () => {
  it('compares the trees of each side with those they began with', async () => {
    const { left, right } = joining()
    const { files } = await left.append(wrote('base', 'L')).diff(right.append(wrote('base', 'base')))
    expect(files).toEqual([
      { path: 'false', change: 'modified', side: 'ours' },
      { path: 'true', change: 'modified', side: 'theirs' },
    ])
  })
})
