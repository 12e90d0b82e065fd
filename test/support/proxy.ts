import { connect, createServer, type Socket } from 'node:net'

/** A wire that can be cut: passes bytes on to a port of this machine until told otherwise. */
export interface Proxy extends Disposable {
  readonly port: number
  /** Cuts every connection as soon as the client has sent something in which the text stands; with `deliver`, after passing it on. */
  cutOn(text: string, options?: { readonly deliver?: boolean }): void
}

export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let cut: { text: string; deliver: boolean } | undefined
  const cutAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  const server = createServer(client => {
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    upstream.on('data', data => client.write(data))
    client.on('data', data => {
      if (cut === undefined || !data.includes(cut.text)) return void upstream.write(data)
      const { deliver } = cut
      cut = undefined
      if (deliver) upstream.end(data)
      client.destroy()
      if (!deliver) cutAll()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    cutOn(text, { deliver = false } = {}) {
      cut = { text, deliver }
    },
    [Symbol.dispose]() {
      server.close()
      cutAll()
    },
  }
}
