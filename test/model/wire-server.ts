import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** What the server does with one request. */
export interface Play {
  /** A file of test/fixtures/wire, such as `anthropic/text.txt`. */
  readonly file?: string
  readonly body?: string
  readonly status?: number
  readonly headers?: Record<string, string>
  /** Afterwards: end properly, break the connection, or say nothing more. */
  readonly ending?: 'end' | 'break' | 'hang'
  /** Chooses where the body is cut into pieces. */
  readonly seed?: number
}

export interface Seen {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into whatever was sent
  readonly body: any
  /** Resolves when the client closed the connection before the answer was complete. */
  readonly closed: Promise<void>
}

/** A server on the loopback that answers requests in order, in pieces cut at random places. The last play repeats. */
export async function wireServer(...plays: Play[]) {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const text: Buffer[] = []
    for await (const piece of request) text.push(piece)
    const play = plays[Math.min(seen.length, plays.length - 1)] as Play
    const closed = new Promise<void>(resolve =>
      response.on('close', () => response.writableFinished || resolve()),
    )
    const body = JSON.parse(Buffer.concat(text).toString())
    seen.push({ path: String(request.url), headers: request.headers, body, closed })
    await answer(response, play).catch(() => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export function fixture(file: string): string {
  return readFileSync(join(import.meta.dirname, '../fixtures/wire', file), 'utf8')
}

async function answer(response: ServerResponse, play: Play): Promise<void> {
  const isStream = play.file?.endsWith('.txt')
  response.writeHead(play.status ?? 200, {
    'content-type': isStream ? 'text/event-stream; charset=utf-8' : 'application/json',
    ...play.headers,
  })
  const bytes = Buffer.from(play.body ?? (play.file ? fixture(play.file) : ''))
  for (const piece of cut(bytes, play.seed ?? 1)) {
    response.write(piece)
    // Each piece in a packet of its own, or nearly so.
    await nextTurn()
  }
  if (play.ending === 'break') response.socket?.resetAndDestroy()
  else if (play.ending !== 'hang') response.end()
}

function* cut(bytes: Buffer, seed: number): Generator<Buffer> {
  let state = seed
  for (let at = 0; at < bytes.length; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    const size = 1 + (state % 97)
    yield bytes.subarray(at, at + size)
    at += size
  }
}
