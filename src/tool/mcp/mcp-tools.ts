import type { Client } from '@modelcontextprotocol/client'
import { isBase64 } from '../../base/base64.ts'
import { RathError } from '../../base/errors.ts'
import { isPlainObject, type Json, type Problem } from '../../base/json.ts'
import { type Part, textOf } from '../../session/part.ts'
import type { Validate } from '../json-schema.ts'
import { describeThrown } from '../outcome.ts'
import type { Effect, Tool, ToolContent, ToolContext } from '../spec.ts'
import { ArgumentError, resultError, ToolError } from '../tool-error.ts'
import { allPages, McpConnection } from './connection.ts'
import {
  effectFrom,
  type ListedTool,
  type Listing,
  type ListingOptions,
  type McpAnnotations,
  readListing,
} from './listing.ts'
import { setMcpOrigin } from './origin.ts'
import type { LaunchServer, McpServer } from './server.ts'

export type { McpAnnotations } from './listing.ts'
export type { McpAddress, McpProgram, McpServer } from './server.ts'

export interface McpOptions extends ListingOptions {
  /** What it is called in messages; by default what the server calls itself. */
  readonly name?: string
  /** Milliseconds a call may take; 60,000 by default. */
  readonly timeout?: number
  /** Milliseconds the server may take to start and answer; 30,000 by default. */
  readonly connectTimeout?: number
  /** What the tools do to the world: `external` by default, so that calls run one at a time and are never repeated unasked. */
  readonly effect?:
    | Effect
    | ((tool: { readonly name: string; readonly annotations: McpAnnotations }) => Effect)
  /** Take the server's word for which tools only read, and which may be repeated. */
  readonly trustHints?: boolean
  /** Gives up connecting. */
  readonly signal?: AbortSignal
}

/** The tools of one MCP server, behind one connection. */
export interface McpTools extends AsyncDisposable {
  readonly name: string
  /** As the server lists them now: read it again after a change. */
  readonly tools: readonly Tool[]
  /** What the server got wrong, and what was done about it. */
  readonly warnings: readonly string[]
  /** Called after the list of tools has changed. */
  onChange(listener: () => void): Disposable
  /** Ends the connection, and the server with everything it started if it was started here. */
  close(): Promise<void>
}

/** Connects to an MCP server. Everything it says, descriptions and results alike, is text by a stranger. */
export async function mcpTools(
  server: McpServer,
  options: McpOptions = {},
  launch?: LaunchServer,
): Promise<McpTools> {
  checkServer(server)
  const tools = new ServerTools(server, options, launch)
  await tools.connect()
  return tools
}

const defaultTimeout = 60_000
const defaultConnectTimeout = 30_000

class ServerTools implements McpTools {
  readonly #server: McpServer
  readonly #options: McpOptions
  readonly #connection: McpConnection
  readonly #listeners = new Set<() => void>()
  #name: string
  #tools: readonly Tool[] = []
  #warnings: readonly string[] = []
  #isFirst = true

  constructor(server: McpServer, options: McpOptions, launch: LaunchServer | undefined) {
    this.#server = server
    this.#options = options
    const { connectTimeout = defaultConnectTimeout } = options
    this.#connection = new McpConnection(server, { connectTimeout, launch }, client => this.#opened(client))
    this.#name = options.name ?? this.#connection.name
  }

  get name(): string {
    return this.#name
  }

  get tools(): readonly Tool[] {
    return this.#tools
  }

  get warnings(): readonly string[] {
    return this.#warnings
  }

  async connect(): Promise<void> {
    try {
      await this.#connection.open(this.#options.signal)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #opened(client: Client): Promise<void> {
    this.#name = this.#options.name ?? client.getServerVersion()?.name ?? this.#name
    let listing = Promise.resolve()
    let isNext = false
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      // A list that is about to be asked for shows this change too.
      if (isNext) return
      isNext = true
      // One after the other, so that the last list wins. One that cannot be had leaves the old list, and says so.
      listing = listing
        .then(() => {
          isNext = false
          return this.#list(client)
        })
        .catch(error => {
          this.#warnings = [
            ...this.#warnings,
            `the changed list could not be read (${describeThrown(error)})`,
          ]
        })
    })
    await this.#list(client)
    this.#isFirst = false
  }

  async #list(client: Client): Promise<void> {
    const listed = client.getServerCapabilities()?.tools ? await allPages(client, this.#timeout) : []
    const listing = readListing(listed, this.#options)
    if (this.#isFirst) refuseClashes(listing, this.#name)
    this.#warnings = Object.freeze([...listing.warnings])
    this.#tools = Object.freeze(
      listing.tools.map(tool => setMcpOrigin(this.#tool(tool), this.#name, this.#server)),
    )
    for (const listener of this.#isFirst ? [] : this.#listeners) {
      try {
        listener()
      } catch {
        // Somebody who watches cannot undo the change.
      }
    }
  }

  get #timeout(): number {
    return this.#options.timeout ?? defaultTimeout
  }

  #tool(listed: ListedTool): Tool {
    const { name, description, parameters, input } = listed
    return Object.freeze<Tool>({
      name,
      description,
      parameters,
      effect: this.#effect(listed),
      timeout: this.#timeout,
      async parse(args) {
        const problems = input?.(args, 'arguments') ?? []
        if (problems.length > 0) throw new ArgumentError(name, problems)
        return args
      },
      run: (args, context) => this.#call(listed, args as Json, context),
    })
  }

  #effect({ remoteName, annotations }: ListedTool): Effect {
    const { effect, trustHints } = this.#options
    if (typeof effect === 'function') return effect({ name: remoteName, annotations })
    return effect ?? (trustHints ? effectFrom(annotations) : 'external')
  }

  async #call({ remoteName, name, output }: ListedTool, args: Json, context: ToolContext): Promise<unknown> {
    const request = { method: 'tools/call', params: { name: remoteName, arguments: args } }
    let answer: unknown
    try {
      answer = await this.#connection.request(request, {
        signal: context.signal,
        // The caller's own timeout comes first and says more; this one is for those who call without.
        timeout: this.#timeout + 1000,
        onprogress: ({ progress, total, message }) =>
          context.progress({
            progress,
            ...(total !== undefined && { total }),
            ...(message !== undefined && { message }),
          }),
      })
    } catch (error) {
      throw this.#explain(error, name)
    }
    return readResult(answer, name, output)
  }

  #explain(error: unknown, tool: string): ToolError {
    const code = (error as { code?: unknown } | undefined)?.code
    if (error instanceof RathError) return new ToolError('threw', error.message, { cause: error })
    if (code === 'REQUEST_TIMEOUT') {
      return new ToolError('timed-out', `${tool} did not answer within ${this.#timeout} ms.`, {
        cause: error,
      })
    }
    if (code === 'CONNECTION_CLOSED' || code === 'NOT_CONNECTED' || code === 'SEND_FAILED') {
      const { lastWords } = this.#connection
      const how = lastWords === '' ? '' : ` (${lastWords})`
      const message = `The MCP server ${this.#name} ended while ${tool} was running${how}; it may have taken effect. The next call connects again.`
      return new ToolError('threw', message, { cause: error })
    }
    const message = `The MCP server ${this.#name} refused ${tool}: ${describeThrown(error)}`
    return new ToolError('threw', message, { cause: error })
  }
}

function refuseClashes({ clashes }: Listing, server: string): void {
  if (clashes.length === 0) return
  const reason = `The MCP server ${server} has tools that cannot be told apart: ${clashes.join('; ')}.`
  throw new RathError('invalid-argument', `${reason} Leave one out with exclude.`)
}

function checkServer(server: McpServer): void {
  if (isPlainObject(server) && ('command' in server ? typeof server.command === 'string' : 'url' in server))
    return
  throw new RathError(
    'invalid-argument',
    'mcpTools takes { command, args?, env?, cwd? } or { url, headers? }.',
  )
}

/** What an MCP server answered, as a tool's result. Throws a `ToolError` when it says that it failed, or breaks its promise. */
function readResult(answer: unknown, tool: string, output: Validate | undefined): ToolContent | Json {
  if (!isPlainObject(answer)) throw broken(tool, [{ path: 'result', message: 'is not an object' }])
  const blocks = Array.isArray(answer.content) ? answer.content : []
  const content = blocks.flatMap(block => partsOf(block))
  if (answer.isError === true) {
    const text = textOf(content) || 'the server gave no reason'
    throw new ToolError('threw', text, { detail: { isError: true } })
  }
  const structured = answer.structuredContent as Json | undefined
  if (output) {
    const problems =
      structured === undefined
        ? [{ path: 'structuredContent', message: 'is missing, though the tool declares an output schema' }]
        : output(structured, 'structuredContent')
    if (problems.length > 0) throw broken(tool, problems)
  }
  if (content.length === 0) return structured ?? null
  return structured === undefined ? { content } : { content, value: structured }
}

function broken(tool: string, problems: readonly Problem[]): ToolError {
  return resultError(tool, 'the MCP server answered something other than it declares', problems)
}

/** The kinds of content that MCP has. One that is not known, or not whole, becomes text: nothing is lost silently. */
function partsOf(block: unknown): Part[] {
  if (!isPlainObject(block)) return [text(JSON.stringify(block) ?? 'null')]
  const { type, data, mimeType } = block
  if (type === 'text' && typeof block.text === 'string') return block.text === '' ? [] : [text(block.text)]
  if (type === 'image' || type === 'audio') return [media(data, mimeType, `${type}`)]
  if (type === 'resource_link') return [text(link(block))]
  if (type === 'resource' && isPlainObject(block.resource)) return resource(block.resource)
  return [text(JSON.stringify(block))]
}

function resource({ uri, mimeType, text: said, blob }: Record<string, unknown>): Part[] {
  const name = typeof uri === 'string' && uri !== '' ? uri : 'resource'
  if (typeof said === 'string') return [text(`[${name}]\n${said}`)]
  return [text(`[${name}]`), media(blob, mimeType, name)]
}

function media(data: unknown, mimeType: unknown, name: string): Part {
  const mediaType = typeof mimeType === 'string' && mimeType !== '' ? mimeType : 'application/octet-stream'
  if (typeof data !== 'string' || !isBase64(data)) return text(`[${name} left out: its data is not base64]`)
  return mediaType.startsWith('image/')
    ? { type: 'image', mediaType, data }
    : { type: 'file', mediaType, data, name }
}

function link({ uri, name, description, mimeType }: Record<string, unknown>): string {
  const known = [name, mimeType, description].filter(part => typeof part === 'string' && part !== '')
  return `[resource ${String(uri)}${known.length > 0 ? `: ${known.join(', ')}` : ''}]`
}

function text(said: string): Part {
  return { type: 'text', text: said }
}
