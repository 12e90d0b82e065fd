import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { findAllowed, parseAllowed, usableAddress } from './allowed-hosts.ts'

/** The only way from a sandbox to the network: an HTTP proxy that listens at a path, and goes to allowed hosts only. */
export interface HostProxy extends AsyncDisposable {
  readonly path: string
}

export async function startProxy(path: string, allow: readonly string[]): Promise<HostProxy> {
  const allowed = allow.map(parseAllowed).filter(entry => entry !== undefined)
  const open = new Set<Duplex>()
  const track = <T extends Duplex>(stream: T): T => {
    open.add(stream)
    stream.once('close', () => open.delete(stream))
    // What breaks on one side ends the other, and is nobody's error.
    return stream.on('error', () => stream.destroy()) as T
  }

  /** Looks the name up here, and goes to the address that was looked at: a second answer could be another one. */
  async function reach(host: string, port: number): Promise<{ address: string; family: number }> {
    const entry = findAllowed(allowed, host, port)
    if (entry === undefined) throw new Refusal(`${host}:${port} is not among the hosts that may be reached`)
    const addresses = await lookup(host.replace(/^\[(.*)\]$/, '$1'), { all: true })
    const address = usableAddress(addresses, entry)
    if (address === undefined) throw new Refusal(`${host} leads to an address inside this network`)
    return address
  }

  const server = createServer((incoming, response) => {
    forward(incoming, response).catch(error => answer(response, error))
  })
  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(incoming.url ?? '')
    if (url?.protocol !== 'http:') throw new Refusal('a proxy is asked for http:// addresses')
    const port = Number(url.port || 80)
    const { address, family } = await reach(url.hostname, port)
    const { 'proxy-connection': _, 'proxy-authorization': __, ...headers } = incoming.headers
    const outgoing = request({
      host: address,
      family,
      port,
      method: incoming.method,
      path: url.pathname + url.search,
      headers: { ...headers, host: url.host },
    })
    outgoing.on('error', error => answer(response, error))
    outgoing.on('socket', socket => track(socket))
    outgoing.on('response', reply => {
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(response)
    })
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  }

  server.on('connection', socket => track(socket))
  server.on('connect', (incoming: IncomingMessage, client: Duplex, head: Buffer) => {
    tunnel(incoming.url ?? '', client, head).catch(error => {
      const { status, text } = problemOf(error)
      client.end(`HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n${text}\n`)
    })
  })
  async function tunnel(target: string, client: Duplex, head: Buffer): Promise<void> {
    const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(target) ?? []
    const { address, family } = await reach(host, Number(port))
    const far: Socket = track(connect({ host: address, family, port: Number(port) }))
    await once(far, 'connect')
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    far.write(head)
    client.pipe(far).pipe(client)
    client.on('close', () => far.destroy())
    far.on('close', () => client.destroy())
  }

  server.listen(path)
  await once(server, 'listening')
  // It serves commands, and they keep the program alive while they run.
  server.unref()
  return {
    path,
    async [Symbol.asyncDispose]() {
      for (const stream of open) stream.destroy()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

class Refusal extends Error {}

function answer(response: ServerResponse, error: unknown): void {
  const { status, text } = problemOf(error)
  if (response.headersSent) response.destroy()
  else response.writeHead(Number.parseInt(status, 10), { 'content-type': 'text/plain' }).end(`${text}\n`)
}

function problemOf(error: unknown): { readonly status: string; readonly text: string } {
  const text = error instanceof Error ? error.message : String(error)
  return { status: error instanceof Refusal ? '403 Forbidden' : '502 Bad Gateway', text }
}
