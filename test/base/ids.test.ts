import { describe, expect, it } from 'vitest'
import { newId, timeOf } from '../../src/base/ids.ts'

const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('a new id', () => {
  it('is a UUID of version 7', () => {
    expect(newId()).toMatch(version7)
  })

  it('is unique and sorts after every id made before it, however many one millisecond has', () => {
    const now = Date.now()
    const ids = Array.from({ length: 30_000 }, () => newId(now))
    expect(new Set(ids).size).toBe(ids.length)
    expect([...ids].sort()).toEqual(ids)
    expect(ids.filter(id => !version7.test(id))).toEqual([])
  })

  it('keeps its order when the clock goes back', () => {
    const later = newId(Date.now() + 60_000)
    expect(newId() > later).toBe(true)
    expect(newId(0) > later).toBe(true)
  })

  it('begins with the time it was made at', () => {
    const time = Date.now() + 3_600_000
    const id = newId(time)
    expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(time)
    expect(timeOf(id)).toBe(time)
    expect(timeOf('run-1')).toBeUndefined()
    expect(timeOf(id.replace(/-7(?=...-[89ab])/, '-4'))).toBeUndefined()
  })
})
