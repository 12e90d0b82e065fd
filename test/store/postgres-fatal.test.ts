import { createServer, type Server } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { openStore } from '../../src/store/open.ts'

let server: Server | undefined
afterEach(() => {
  server?.close()
})

/** A message of PostgreSQL's protocol: a letter, the length, the rest. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

const welcome = [message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]
const goodbye = message(
  'E',
  Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'),
)

it('a server that dies in the moment of connecting is an error to try again after, and not the end of the process', async () => {
  server = createServer(socket => {
    socket.on('error', () => {})
    // In one piece, so that the client reads the goodbye before it can send its first query.
    socket.once('data', () => socket.end(Buffer.concat([...welcome, goodbye])))
  })
  await new Promise<void>(resolve => server?.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const opened = openStore(`postgres://user@127.0.0.1:${port}/none`, { secrets: {}, busyTimeout: 1000 })
  await expect(opened).rejects.toMatchObject({ code: 'store-unreachable', retry: 'after' })
})
