import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { EventStream, type RunEvent } from '../../src/run/event.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

it('a reader that is always behind holds on to what it has not read, and to little else', async () => {
  const stream = new EventStream()
  const reader = stream.iterate(Promise.resolve())
  const told: WeakRef<RunEvent>[] = []
  const tell = () => {
    const event = { type: 'run-start', by: 'Agent', sessionId: `${told.length}` } as const
    told.push(new WeakRef(event))
    stream.emit(event)
  }
  for (let i = 0; i < 100; i++) tell()
  for (let i = 0; i < 1000; i++) {
    tell()
    expect((await reader.next()).value?.sessionId).toBe(`${i}`)
  }
  // A weak reference that was looked at in this turn stays: end it.
  await new Promise(setImmediate)
  collect()
  const held = told.filter(event => event.deref() !== undefined).length
  expect(held).toBeGreaterThanOrEqual(100)
  expect(held).toBeLessThan(300)
  for (let i = 1000; i < 1100; i++) expect((await reader.next()).value?.sessionId).toBe(`${i}`)
})
