import type { ChildProcess } from 'node:child_process'
import { RathError, show } from '../base/errors.ts'
import { isPlainObject, type JsonObject } from '../base/json.ts'
import { SandboxRegistry } from '../sandbox/registry.ts'
import type { SandboxBackend } from '../sandbox/spec.ts'
import {
  type McpOptions as ConnectOptions,
  mcpTools as connect,
  type McpServer,
  type McpTools,
} from '../tool/mcp/mcp-tools.ts'
import type { LaunchServer } from '../tool/mcp/server.ts'

export interface McpOptions extends ConnectOptions {
  /**
   * Where the server's program runs: `'isolated'`, or that with a spec, `{ backend: 'isolated', read: ['/opt/tools'], network: { allow: ['example.com'] } }`. It
   * sees `cwd`, or an empty folder of its own, and no network. By default it runs as you, with your files.
   */
  readonly sandbox?: string | JsonObject
}

/** Connects to an MCP server. Everything it says, descriptions and results alike, is text by a stranger. */
export async function mcpTools(
  server: McpServer,
  { sandbox, ...options }: McpOptions = {},
): Promise<McpTools> {
  if (sandbox === undefined) return connect(server, options)
  const { backend, spec } = sandboxOf(sandbox)
  if (isPlainObject(server) && 'url' in server) {
    throw new RathError(
      'invalid-argument',
      'A server with a url runs elsewhere; sandbox is for one that is started here.',
    )
  }
  return connect(server, options, launchIn(new SandboxRegistry().get(backend), spec))
}

function sandboxOf(sandbox: unknown): { readonly backend: string; readonly spec: JsonObject } {
  const given = typeof sandbox === 'string' ? { backend: sandbox } : sandbox
  if (isPlainObject(given) && typeof given.backend === 'string') {
    const { backend, ...spec } = given as JsonObject & { backend: string }
    return { backend, spec }
  }
  throw new RathError(
    'invalid-argument',
    `sandbox is 'isolated' or { backend: 'isolated', read, network, … }, not ${show(sandbox)}.`,
  )
}

/** A sandbox for each start of the server, closed when it has ended. */
function launchIn(backend: SandboxBackend, spec: JsonObject): LaunchServer {
  return async ({ command, args = [], env = {}, cwd }) => {
    const sandbox = await backend.open({ ...(cwd !== undefined && { path: cwd }), ...spec })
    try {
      if (sandbox.startProgram === undefined) {
        throw new RathError(
          'sandbox-unsupported',
          `A sandbox of ${backend.name} cannot hold an MCP server; use 'isolated'.`,
        )
      }
      const { child, kill } = await sandbox.startProgram([command, ...args], { env })
      ;(child as ChildProcess).once('exit', () => sandbox.close().catch(() => {}))
      return { child, kill }
    } catch (error) {
      await sandbox.close()
      throw error
    }
  }
}
