import { Places } from '../../../src/run/place/places.ts'
import { localBackend } from '../../../src/sandbox/drivers/local/driver.ts'
import type { Sandbox, SandboxBackend } from '../../../src/sandbox/spec.ts'
import type { Session } from '../../../src/session/session.ts'

/** The local backend, and every sandbox that it opened or closed. */
export function counted() {
  const opened: Sandbox[] = []
  const closed: string[] = []
  const backend: SandboxBackend = {
    ...localBackend(),
    async open(spec, options) {
      const sandbox = await localBackend().open(spec, options)
      opened.push(sandbox)
      const close = sandbox.close.bind(sandbox)
      return Object.assign(sandbox, {
        close: () => {
          closed.push(sandbox.id)
          return close()
        },
      })
    },
  }
  return { opened, closed, backend, places: new Places({ sandboxes: [backend] }) }
}

/** The sandbox that a session works in. */
export async function sandboxOf(places: Places, session: Session): Promise<Sandbox> {
  return (await places.open({ session })).sandbox
}

/** Resolves for all once `count` have come: proof that they were under way at the same time. */
export function barrier(count: number) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let came = 0
  return async (): Promise<number> => {
    if (++came === count) resolve()
    await promise
    return came
  }
}
