import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { note } from './make.ts'

describe('to', () => {
  const start = Session.fromUserMessage('go')

  it('places a new session and leaves the old one where it was', () => {
    const placed = start.to('local', './')
    expect(placed.placement).toEqual({ backend: 'local', spec: './' })
    expect(start.placement).toBeUndefined()
    expect(placed.chunks.at(-1)).toMatchObject({ kind: 'placement', backend: 'local', spec: './' })
  })

  it('holds for everything made from it, until it is placed elsewhere', () => {
    const placed = start.to('local', { path: './', net: false })
    expect(placed.append(note('n')).fork('a').placement).toEqual({
      backend: 'local',
      spec: { path: './', net: false },
    })
    expect(placed.to('isolated').placement).toEqual({ backend: 'isolated' })
    expect(placed.to('isolated').rewind(-2).placement?.backend).toBe('local')
    expect(placed.rewind(0).placement).toBeUndefined()
  })

  it('shows the workspace that a placement chunk carries', () => {
    const workspace = { path: '/w', tree: 'ab'.repeat(32) }
    expect(start.append({ kind: 'placement', backend: 'local', workspace }).placement).toEqual({
      backend: 'local',
      workspace,
    })
  })
})
