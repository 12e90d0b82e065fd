import { describe, expect, it } from 'vitest'
import { commonLane, filesLane, isPlacedFolder, laneBefore } from '../../src/session/lane.ts'
import { Session } from '../../src/session/session.ts'
import { note } from './make.ts'

const start = Session.fromUserMessage('go').to('local', './')
const laneOf = (session: Session) => session.lineage.lane ?? ''

describe('a lane', () => {
  it('is the root until something is forked, whatever is appended or placed', () => {
    expect(laneOf(start)).toBe('')
    expect(laneOf(start.append(note('a')).to('local', './other').detach())).toBe('')
  })

  it('is kept by everything that goes on from a fork', () => {
    const fork = start.fork('a')
    expect(laneOf(fork)).toBe(fork.id)
    expect(laneOf(fork.append(note('a')).user('b').detach())).toBe(fork.id)
    const deeper = fork.fork()
    expect(laneOf(deeper)).toBe(`${fork.id}/${deeper.id}`)
  })

  it('tells forks with one label apart', () => {
    expect(laneOf(start.fork('a'))).not.toBe(laneOf(start.fork('a')))
  })

  it('is a new one after a rewind, whose files are those of that time', () => {
    const back = start.append(note('a')).rewind(0)
    expect(laneOf(back)).toBe(back.id)
  })

  it('ends where the merged branches began', async () => {
    const [a, b] = start.fork('outer').forks(2) as [Session, Session]
    expect(laneOf(await a.merge(b))).toBe(laneBefore(laneOf(a)))
    expect(laneOf(await start.merge(a))).toBe('')
  })

  it('of a fork that shares the files is its own, and its files are those of its parent', () => {
    const fork = start.fork('a')
    const shared = fork.fork({ workspace: 'shared' })
    expect(laneOf(shared)).toBe(`${fork.id}/~${shared.id}`)
    expect(filesLane(laneOf(shared.fork({ workspace: 'shared' })))).toBe(fork.id)
    expect(filesLane(laneOf(start.fork({ workspace: 'shared' })))).toBe('')
    const own = shared.fork()
    expect(filesLane(laneOf(own))).toBe(laneOf(own))
  })

  it('works in the folder itself at the root and where it was placed anew, and in a copy elsewhere', () => {
    const fork = start.fork('a')
    const placed = fork.to('local', './b')
    expect(
      [start, fork, placed, placed.fork(), placed.fork({ workspace: 'shared' })]
        .map(laneOf)
        .map(isPlacedFolder),
    ).toEqual([true, false, true, false, true])
  })

  it('survives a file', () => {
    const fork = start.fork('a')
    expect(Session.fromJSONL(fork.toJSONL()).lineage).toEqual(fork.lineage)
  })
})

describe('the lane that several come from', () => {
  it('is what they have in common from the root', () => {
    expect(commonLane(['a/b', 'a/c'])).toBe('a')
    expect(commonLane(['a', 'a/b/c'])).toBe('a')
    expect(commonLane(['ab', 'ac'])).toBe('')
    expect(commonLane([])).toBe('')
  })
})
