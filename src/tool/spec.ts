import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Json, JsonObject } from '../base/json.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { PartInput } from '../session/part.ts'
import type { Session } from '../session/session.ts'

/**
 * What a call does to the world, which decides what a resumed run does with a call that was cut off: `pure`, `read` and
 * `idempotent` run again, `workspace` runs again on the restored files, `external` waits for a person.
 */
export type Effect = 'pure' | 'read' | 'workspace' | 'idempotent' | 'external'

/** A tool as the runtime sees it, wherever it came from: `tool()`, a `FlowToolCall`, an MCP server, an agent. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, as the model is shown it. */
  readonly parameters: JsonObject
  readonly effect: Effect
  /** What it does goes through the door itself, as an agent's work does: a call that was cut off runs again and repeats nothing. */
  readonly resumable?: boolean
  /** Whatever it does, it does through its sandbox: where that lets nothing out, an `external` effect is a `workspace` one. */
  readonly sandboxed?: boolean
  /** Milliseconds until a call is cancelled and reported as timed out; none by default. */
  readonly timeout?: number
  /** Ask a person before running: always, or when this says so for the arguments. */
  readonly approval?: boolean | ((args: Json, context: ToolContext) => boolean | Promise<boolean>)
  /**
   * What calls must not overlap on. Calls that share a resource run in the order asked, others side by side. A call whose
   * effect is `workspace` or `external` and that names none runs alone.
   */
  resource?(args: Json): string | readonly string[] | undefined
  /** Checks and converts the arguments a model wrote. Throws `ArgumentError` with every problem. */
  parse(args: Json): Promise<unknown>
  /** Any JSON value, a string, or `{ content }` with parts. What is not JSON is refused with its path. */
  run(args: unknown, context: ToolContext): unknown
}

export interface ToolContext {
  /** The session as it was when the model asked. */
  readonly session: Session
  readonly callId: string
  /** Where the session is placed. Opened when first asked for; rejects when the session has no place or it cannot be opened. */
  readonly sandbox: Promise<Sandbox>
  /** Aborted when the run is cancelled or the call times out. */
  readonly signal: AbortSignal
  /** Shown to whoever follows the run; not recorded in the session. */
  progress(data: Json): void
}

/** `content` of a tool's result: shown to the model as parts. Bytes may be a `Uint8Array`. */
export interface ToolContent {
  readonly content: readonly PartInput[]
  /** The same for programs. */
  readonly value?: Json
}

/** Kinds of failure that a model can read and react to. */
export type ToolFailure =
  | 'invalid-arguments'
  | 'unknown-tool'
  | 'timed-out'
  | 'cancelled'
  | 'threw'
  | 'unreadable-result'

/** Any Standard Schema (zod, valibot, arktype …), or a JSON Schema. */
export type ToolSchema<Output = unknown> = StandardSchemaV1<unknown, Output> | JsonObject
