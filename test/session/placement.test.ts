import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { recordedSpec } from '../../src/session/placement.ts'
import { Session } from '../../src/session/session.ts'
import { note } from './make.ts'

describe('to', () => {
  const start = Session.fromUserMessage('go')

  it('places a new session and leaves the old one where it was', () => {
    const placed = start.to('local', '/work')
    expect(placed.placement).toEqual({ backend: 'local', spec: '/work' })
    expect(start.placement).toBeUndefined()
    expect(placed.chunks.at(-1)).toMatchObject({ kind: 'placement', backend: 'local', spec: '/work' })
  })

  it('records a folder that is named from the current one under its absolute name', () => {
    const here = process.cwd()
    const spec = (given: string | { path: string }) => start.to('local', given).placement?.spec
    expect([spec('./'), spec('.'), spec('./a/../b/')]).toEqual([here, here, join(here, 'b')])
    expect(spec('..')).toBe(dirname(here))
    expect(spec('../../../../../../../../../..')).toBe('/')
    expect(spec({ path: './' })).toEqual({ path: here })
    // What else a text means is the backend's business: the name of an image, a name of its own.
    for (const given of ['node:24', 'work', '/abs/./x', '...', '.hidden', '~/x'])
      expect(spec(given)).toBe(given)
  })

  it('knows the folders of other systems, and leaves a name as it is where there is no current folder', () => {
    const from = (current: string | undefined, spec: unknown) => recordedSpec(spec, current)
    expect(from('C:\\Users\\ann', '.\\work')).toBe('C:\\Users\\ann\\work')
    expect(from('C:\\Users\\ann', '../../../..')).toBe('C:\\')
    const { process: node } = globalThis
    try {
      Object.assign(globalThis, { process: undefined })
      expect(recordedSpec('./')).toBe('./')
    } finally {
      Object.assign(globalThis, { process: node })
    }
  })

  it('holds for everything made from it, until it is placed elsewhere', () => {
    const placed = start.to('local', { path: '/work', net: false })
    expect(placed.append(note('n')).fork('a').placement).toEqual({
      backend: 'local',
      spec: { path: '/work', net: false },
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
