import { describe, expect, it } from 'vitest'
import type { FileChange } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { note, says, user } from './make.ts'

const start = Session.create('empty').append(user('go'))
const wrote = (...files: FileChange[]) =>
  ({
    kind: 'tool-result',
    callId: 'c',
    tool: 'write',
    outcome: { kind: 'value', value: null },
    files,
  }) as const

describe('diff', () => {
  it('shows what each side has of its own since the last chunk they share', async () => {
    const ours = start.append(says('A'), note('n'))
    const theirs = start.append(says('B'))
    const diff = await ours.diff(theirs)
    expect(diff).toMatchObject({ ancestor: start.head, shared: 1, files: [] })
    expect(diff.ours.map(chunk => chunk.text)).toEqual(['A', 'n'])
    expect(diff.theirs.map(chunk => chunk.text)).toEqual(['B'])
  })

  it('is empty between a session and its fork, and total between strangers', async () => {
    expect(await start.diff(start.fork())).toEqual({
      ancestor: start.head,
      shared: 1,
      ours: [],
      theirs: [],
      files: [],
    })
    const strangers = await start.diff(Session.fromUserMessage('other', { at: 5 }))
    expect([strangers.ancestor, strangers.shared]).toEqual([undefined, 0])
    expect((await start.diff(Session.create('empty'))).ours).toHaveLength(1)
  })

  it('recognises equal history that was built apart, before anyone asked for an id', async () => {
    const build = (last: string) => Session.create('empty').append(user('go'), says('ok'), says(last))
    expect((await build('A').diff(build('B'))).shared).toBe(2)
    expect((await build('A').diff(build('A'))).shared).toBe(3)
    const merged = await build('A').merge(build('B'))
    expect(merged.chunks.at(-1)).toMatchObject({ kind: 'merge', ancestor: build('A').chunks.at(1)?.id })
  })

  it('names the files that either side changed, the last change of each path', async () => {
    const base = start.append(wrote({ path: 'old', change: 'added' }))
    const ours = base.append(wrote({ path: 'a', change: 'added' }), wrote({ path: 'a', change: 'modified' }))
    const theirs = base.append(wrote({ path: 'a', change: 'deleted' }, { path: 'b', change: 'added' }))
    expect((await ours.diff(theirs)).files).toEqual([
      { path: 'a', change: 'modified', side: 'ours' },
      { path: 'a', change: 'deleted', side: 'theirs' },
      { path: 'b', change: 'added', side: 'theirs' },
    ])
  })
})
