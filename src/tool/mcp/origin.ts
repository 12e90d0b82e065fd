import type { Tool } from '../spec.ts'
import type { McpServer } from './server.ts'

/** Where a tool comes from, without arguments, variables or headers: they hold secrets. */
export interface McpOrigin {
  readonly name: string
  readonly at: string
}

const origins = new WeakMap<Tool, McpOrigin>()

export function setMcpOrigin(tool: Tool, name: string, server: McpServer): Tool {
  origins.set(tool, { name, at: placeOf(server) })
  return tool
}

/** The MCP server of a tool; undefined for tools that come from elsewhere. */
export function mcpOriginOf(tool: Tool): McpOrigin | undefined {
  return origins.get(tool)
}

function placeOf(server: McpServer): string {
  if ('command' in server) return server.command
  const url = URL.parse(String(server.url))
  return url ? `${url.origin}${url.pathname}` : 'an address that is not a URL'
}
