import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Places } from '../../src/run/place/places.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import type { Sandbox, SandboxBackend } from '../../src/sandbox/spec.ts'
import { Session } from '../../src/session/session.ts'
import { temporaryFolder } from './make.ts'

/** The local backend, counting, and opening only when it is let. */
function counted(gate: Promise<unknown> = Promise.resolve()) {
  const opened: Sandbox[] = []
  const backend: SandboxBackend = {
    ...localBackend(),
    async open(spec, options) {
      await gate
      const sandbox = await localBackend().open(spec, options)
      opened.push(sandbox)
      return sandbox
    },
  }
  return { opened, backend, places: new Places({ sandboxes: [backend] }) }
}

const asked = () => Session.fromUserMessage('go')

test('however many ask at once, a place is opened once', async () => {
  using folder = temporaryFolder()
  const { opened, places } = counted()
  const sessions = [asked(), asked(), asked()].map(session => session.to('local', folder.path))
  const sandboxes = await Promise.all([...sessions, ...sessions].map(session => places.open({ session })))
  expect(new Set(sandboxes).size).toBe(1)
  expect(opened).toHaveLength(1)
  await places.close()
})

test('sessions placed without a folder have one each, and what comes from them shares it', async () => {
  const { opened, places } = counted()
  const [one, two] = [asked().user('1').to('local'), asked().user('2').to('local')]
  const first = await places.open({ session: one })
  expect(await places.open({ session: two })).not.toBe(first)
  const [left, right] = ['left', 'right'].map(label =>
    one.fork({ label, workspace: 'shared' }).user(label),
  ) as [Session, Session]
  const merged = await left.merge(right)
  for (const session of [one.user('more'), left, right, merged, Session.fromJSONL(one.toJSONL())]) {
    expect(await places.open({ session })).toBe(first)
  }
  expect(opened).toHaveLength(2)
  const helper = Session.fromUserMessage('help').to('local')
  places.share(helper, one)
  expect(await places.open({ session: helper.user('on') })).toBe(first)
  await places.close()
  expect(opened.map(({ cwd }) => existsSync(cwd))).toEqual([false, false])
})

test('a session without a place is told how to get one', async () => {
  await expect(new Places().open({ session: asked() })).rejects.toMatchObject({
    code: 'placement-missing',
    message: expect.stringContaining("session.to('local', './')"),
  })
  await expect(new Places().open({ session: asked().to('nowhere') })).rejects.toMatchObject({
    code: 'unknown-sandbox',
  })
})

test('a place that could not be opened is tried again', async () => {
  let isBroken = true
  const backend: SandboxBackend = {
    ...localBackend(),
    open(spec, options) {
      if (!isBroken) return localBackend().open(spec, options)
      isBroken = false
      return Promise.reject(new Error('not yet'))
    },
  }
  const places = new Places({ sandboxes: [backend] })
  const session = asked().to('local')
  await expect(places.open({ session })).rejects.toThrow('not yet')
  expect((await places.open({ session })).sandbox.backend).toBe('local')
  await places.close()
})

test('one who gives up does not spoil the opening for others', async () => {
  const { promise: gate, resolve } = Promise.withResolvers<void>()
  const { places } = counted(gate)
  const session = asked().to('local')
  const abort = new AbortController()
  const given = places.open({ session, signal: abort.signal })
  const waiting = places.open({ session, signal: new AbortController().signal })
  abort.abort()
  await expect(given).rejects.toMatchObject({ code: 'cancelled' })
  resolve()
  expect((await waiting).sandbox.backend).toBe('local')
  await places.close()
})

test('closing the runtime closes its sandboxes, one that is only being opened too', async () => {
  const { promise: gate, resolve } = Promise.withResolvers<void>()
  const { opened, backend } = counted(gate)
  const runtime = createRuntime({ store: 'memory:', sandboxes: [backend] })
  const opening = runtime.places.open({ session: asked().to('local') })
  opening.catch(() => {})
  const closing = runtime.close()
  resolve()
  await closing
  for (const { cwd } of opened) expect(existsSync(join(cwd))).toBe(false)
  await expect(runtime.places.open({ session: asked().to('local') })).rejects.toMatchObject({
    code: 'sandbox-closed',
  })
  await runtime.close()
})
