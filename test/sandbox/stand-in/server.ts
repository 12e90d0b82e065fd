import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Call, refuse } from './answer.ts'
import { openUserNamespace } from './box.ts'
import { handleExecd } from './execd.ts'
import { Lifecycle } from './lifecycle.ts'

export interface StandIn extends AsyncDisposable {
  readonly domain: string
  readonly apiKey: string
  readonly lifecycle: Lifecycle
}

/**
 * An OpenSandbox server on this machine: the same two interfaces over HTTP, real processes and a temporary folder. Its answers are typed by
 * the client's package, and it has the habits of the real server that its description does not tell.
 */
export async function startStandIn(): Promise<StandIn> {
  const base = mkdtempSync(join(tmpdir(), 'openrath-stand-in-'))
  const apiKey = 'a-key-of-the-stand-in'
  let domain = ''
  const namespace = await openUserNamespace()
  const lifecycle = new Lifecycle(base, () => domain, namespace)
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://stand-in')
    const box = /^\/boxes\/([^/]+)\/(\d+)(\/.*)$/.exec(pathname)
    const path = box?.[3] ?? pathname.replace(/^\/v1/, '')
    const call: Call = { request, response, method: request.method ?? '', path, query }
    handle(call, box?.[1]).catch(error => {
      if (!response.headersSent) refuse(call, 500, `INTERNAL ${String(error)}`)
    })
  })

  async function handle(call: Call, id: string | undefined): Promise<void> {
    const { headers } = call.request
    if (id === undefined) {
      if (headers['open-sandbox-api-key'] !== apiKey) return refuse(call, 401, 'UNAUTHORIZED')
      return lifecycle.handle(call)
    }
    const box = lifecycle.boxes.get(id)
    if (box === undefined) return refuse(call, 404, 'SANDBOX_NOT_FOUND')
    if (headers['x-execd-access-token'] !== box.token) return refuse(call, 401, 'UNAUTHORIZED')
    return handleExecd(call, box)
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  domain = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    domain,
    apiKey,
    lifecycle,
    async [Symbol.asyncDispose]() {
      lifecycle.close()
      namespace?.[Symbol.dispose]()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
      rmSync(base, { recursive: true, force: true })
    },
  }
}
