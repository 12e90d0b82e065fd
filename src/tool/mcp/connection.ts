import type { Client, ProgressCallback, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { LinkedAbort } from '../../base/abort.ts'
import { RathError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import { describeThrown } from '../outcome.ts'
import { ProcessTransport } from './process-transport.ts'
import type { LaunchServer, McpServer } from './server.ts'

interface Open {
  readonly client: Client
  readonly transport: ProcessTransport | StreamableHTTPClientTransport
  /** Requests that it has not answered. */
  running: number
  /** Makes the next request open another one, if this is the one in use. */
  leave(): void
}

interface Request {
  readonly method: string
  readonly params?: { [name: string]: unknown }
}

interface RequestOptions {
  readonly signal?: AbortSignal
  readonly timeout: number
  readonly onprogress?: ProgressCallback
}

/** One connection to one server, for any number of requests at a time. When it is lost, the next request opens it again. */
export class McpConnection {
  readonly #server: McpServer
  readonly #connectTimeout: number
  readonly #launch: LaunchServer | undefined
  readonly #onOpen: (client: Client) => Promise<void>
  #open: Promise<Open> | undefined
  /** Left, but still answering what it was asked before. */
  readonly #left = new Set<Open>()
  readonly #closing = new AbortController()
  #lastWords = ''

  /** `onOpen` is told about every new connection before it is used. */
  constructor(
    server: McpServer,
    {
      connectTimeout,
      launch,
    }: { readonly connectTimeout: number; readonly launch?: LaunchServer | undefined },
    onOpen: (client: Client) => Promise<void>,
  ) {
    this.#server = server
    this.#launch = launch
    this.#connectTimeout = connectTimeout
    this.#onOpen = onOpen
  }

  /** What the server is called where it has not said so itself: never its arguments or headers, which may hold secrets. */
  get name(): string {
    return 'url' in this.#server ? new URL(this.#server.url).host : this.#server.command
  }

  /** How it ended, as far as is known. */
  get lastWords(): string {
    return this.#lastWords
  }

  /** The open connection; opens one, once for all who ask, when there is none. */
  open(signal?: AbortSignal): Promise<Open> {
    if (this.#closing.signal.aborted) {
      const message = `The MCP server ${this.name} was closed; call mcpTools again for a new connection.`
      return Promise.reject(new RathError('mcp-unreachable', message))
    }
    if (this.#open) return this.#open
    const leave = () => {
      if (this.#open === opening) this.#open = undefined
    }
    const opening = this.#connect(signal, leave)
    this.#open = opening
    opening.catch(leave)
    return opening
  }

  /** Sends a request and gives its raw result. Everything it rejects with comes from the SDK, the server or the network. */
  async request(request: Request, options: RequestOptions): Promise<unknown> {
    const open = await this.open()
    try {
      return await this.#send(request, options, open)
    } catch (error) {
      if (!isForgotten(error, open)) throw error
      // The server was restarted and does not know this session: it has not done anything, so asking again is safe.
      return this.#send(request, options, await this.open())
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('it was closed'))
    const open = await this.#open?.catch(() => undefined)
    this.#open = undefined
    await Promise.all([...this.#left, ...(open ? [open] : [])].map(closeOpen))
  }

  async #send(request: Request, options: RequestOptions, open: Open): Promise<unknown> {
    open.running++
    try {
      return await open.client.request(request, anything, options)
    } catch (error) {
      if (isForgotten(error, open)) {
        open.leave()
        this.#left.add(open)
      }
      throw error
    } finally {
      open.running--
      // Not before its last answer: to end it sooner would fail calls that may well have happened.
      if (open.running === 0 && this.#left.has(open)) void closeOpen(open).then(() => this.#left.delete(open))
    }
  }

  async #connect(signal: AbortSignal | undefined, leave: () => void): Promise<Open> {
    const sdk = await import('@modelcontextprotocol/client')
    const transport = transportFor(this.#server, sdk, this.#launch)
    const client = new sdk.Client({ name: 'openrath', version: '0' }, { capabilities: {} })
    const open = { client, transport, running: 0, leave }
    client.onclose = () => {
      if (transport instanceof ProcessTransport) this.#lastWords = transport.lastWords
      leave()
    }
    using abort = new LinkedAbort(this.#closing.signal, signal)
    try {
      await client.connect(transport, { timeout: this.#connectTimeout, signal: abort.signal })
      await this.#onOpen(client)
      return open
    } catch (error) {
      await closeOpen(open)
      throw new RathError('mcp-unreachable', this.#unreachable(error, transport), { cause: error })
    }
  }

  #unreachable(error: unknown, transport: Open['transport']): string {
    const words = transport instanceof ProcessTransport ? transport.lastWords : ''
    const said = words === '' ? '' : ` It said: ${words}`
    const check = 'url' in this.#server ? 'the address and the headers' : 'the command and what it prints'
    return `The MCP server ${this.name} could not be reached (${describeThrown(error)}); check ${check}.${said}`
  }
}

/** Results are read by hand: a server that breaks the schema in one place should not lose everything else. */
const anything: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'openrath', validate: value => ({ value }) },
}

function transportFor(
  server: McpServer,
  sdk: typeof import('@modelcontextprotocol/client'),
  launch: LaunchServer | undefined,
): Open['transport'] {
  if (!('url' in server)) return new ProcessTransport(server, sdk, launch)
  const { url, headers } = server
  return new sdk.StreamableHTTPClientTransport(new URL(url), {
    ...(headers && { requestInit: { headers: { ...headers } } }),
  })
}

/** A session id that the server no longer knows: 404 by the specification, 400 by many servers. */
function isForgotten(error: unknown, { transport }: Open): boolean {
  if (transport instanceof ProcessTransport || transport.sessionId === undefined) return false
  const status = (error as { data?: { status?: unknown }; status?: unknown } | undefined)?.data?.status
  const code = status ?? (error as { status?: unknown } | undefined)?.status
  return code === 404 || code === 400
}

async function closeOpen({ client, transport }: Open): Promise<void> {
  if (!(transport instanceof ProcessTransport) && transport.sessionId !== undefined) {
    // Polite, and not worth waiting for: the server may be gone.
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise(resolve => {
      timer = setTimeout(resolve, 1000)
    })
    await Promise.race([transport.terminateSession().catch(() => {}), enough])
    clearTimeout(timer)
  }
  await client.close().catch(() => {})
  await transport.close().catch(() => {})
}

/** A server whose list never ends is stopped here. */
const mostPages = 100

/** Everything that a server lists, page by page. */
export async function allPages(client: Client, timeout: number): Promise<unknown[]> {
  const tools: unknown[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const request = { method: 'tools/list', ...(cursor !== undefined && { params: { cursor } }) }
    const answer = await client.request(request, rawList, { timeout })
    tools.push(...answer.tools)
    cursor = answer.cursor
    // A cursor that comes back would go round for ever.
    if (cursor === undefined || seen.has(cursor)) break
    seen.add(cursor)
  }
  return tools
}

/** Only what is needed of a list, so that one wrong entry does not lose the others. */
const rawList: StandardSchemaV1<unknown, { tools: unknown[]; cursor: string | undefined }> = {
  '~standard': {
    version: 1,
    vendor: 'openrath',
    validate(answer) {
      if (!isPlainObject(answer) || !Array.isArray(answer.tools)) {
        return { issues: [{ message: 'the list of tools has no tools' }] }
      }
      const { tools, nextCursor } = answer
      const cursor = typeof nextCursor === 'string' ? nextCursor : undefined
      return { value: { tools, cursor } }
    },
  },
}
