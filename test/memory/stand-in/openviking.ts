import { createServer, type IncomingMessage, type Server } from 'node:http'
import { VikingWorld } from './world.ts'

/**
 * A stand-in for an OpenViking server, over real HTTP. It is none: it keeps files in memory, finds by the words that a text shares with the
 * query, and draws one memory from each message. Paths, fields, the envelope and the codes of errors are those that OpenViking documents.
 */
export interface VikingStandIn extends AsyncDisposable {
  readonly url: string
  readonly requests: readonly SeenRequest[]
  /** The next so many requests are answered so, whatever they ask. */
  fail(times: number, answer: Answer): void
  /** Extraction of sessions fails from now on, as without a language model. */
  breakExtraction(): void
}

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

export interface Answer {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent instead of an envelope. */
  readonly raw?: string
  /** Breaks the connection instead of answering. */
  readonly hangUp?: boolean
}

export async function startOpenViking({ key = 'test-key' } = {}): Promise<VikingStandIn> {
  const worlds = new Map<string, VikingWorld>()
  const requests: SeenRequest[] = []
  const failures: Answer[] = []
  let broken = false

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://stand-in')
    const body = await bodyOf(request)
    requests.push({ method: request.method ?? '', path: url.pathname, headers: request.headers, body })
    const failure = failures.shift()
    if (failure?.hangUp) return void request.socket.destroy()
    const answer = failure ?? answerTo(request, url, body)
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end(answer.raw ?? JSON.stringify(envelope(answer)))
  })

  const answerTo = (request: IncomingMessage, url: URL, body: unknown): Answer & { result?: unknown } => {
    if (url.pathname === '/health') return { status: 200 }
    if (request.headers['x-api-key'] !== key) {
      return { status: 401, code: 'UNAUTHENTICATED', message: 'Invalid API key' }
    }
    const account = String(request.headers['x-openviking-account'] ?? 'default')
    const user = String(request.headers['x-openviking-user'] ?? 'default')
    const name = `${account}/${user}`
    const world = worlds.get(name) ?? new VikingWorld(user)
    worlds.set(name, world)
    world.broken = broken
    return world.answer(request.method ?? '', url, body)
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    fail(times, answer) {
      for (let i = 0; i < times; i++) failures.push(answer)
    },
    breakExtraction() {
      broken = true
    },
    [Symbol.asyncDispose]: () => stop(server),
  }
}

function envelope({ code, message, result }: Answer & { result?: unknown }): unknown {
  if (code === undefined) return { status: 'ok', result: result ?? null, time: 0.01 }
  return { status: 'error', error: { code, message: message ?? code }, time: 0.01 }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const bytes = Buffer.concat(parts)
  const type = request.headers['content-type'] ?? ''
  if (type.startsWith('multipart/form-data')) {
    const form = await new Response(bytes, { headers: { 'content-type': type } }).formData()
    const file = form.get('file') as File
    return { name: file.name, text: await file.text() }
  }
  return bytes.length === 0 ? undefined : JSON.parse(bytes.toString('utf8'))
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
}
