/** An MCP server that is started as a program and spoken to over its standard input and output. */
export interface McpProgram {
  readonly command: string
  readonly args?: readonly string[]
  /** Added to a clean environment: PATH, HOME and the like, and none of your other variables. */
  readonly env?: { readonly [name: string]: string }
  readonly cwd?: string
}

/** An MCP server that is already running somewhere, spoken to over streamable HTTP. */
export interface McpAddress {
  readonly url: string | URL
  readonly headers?: { readonly [name: string]: string }
}

/** Kept apart from the connection, so that our types do not bring the SDK's into your project. */
export type McpServer = McpProgram | McpAddress

/** Starts the program of a server, with pipes to speak through. `kill` ends everything that it started, too. */
export type LaunchServer = (program: McpProgram) => Promise<StartedServer>

export interface StartedServer {
  /** A `ChildProcess` of Node. */
  readonly child: object
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}
