import type { Json } from '../../src/base/json.ts'
import type { ChunkInput, ToolOutcome } from '../../src/session/chunk.ts'
import type { ToolCallPart } from '../../src/session/part.ts'
import { Session } from '../../src/session/session.ts'
import { dispatchCalls } from '../../src/tool/dispatch.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { tool, toolTable } from '../../src/tool/tool.ts'
import type { CallRecord, Turn } from '../../src/tool/turn.ts'

export const anyObject = { type: 'object' } as const

/** A call as a model writes it; ids count up from `c0` in `dispatch`. */
export function call(name: string, args: Json = {}, id = 'c'): ToolCallPart {
  return { type: 'tool-call', id, name, args }
}

export function numbered(...calls: readonly ToolCallPart[]): ToolCallPart[] {
  return calls.map((part, i) => ({ ...part, id: `c${i}` }))
}

/** A tool of few words, pure unless it says otherwise. */
export function simple(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  const made = tool({ name, description: name, input: anyObject, effect: 'pure', run: run as never })
  return { ...made, ...more }
}

export interface Dispatched {
  readonly records: readonly CallRecord[]
  readonly outcomes: readonly ToolOutcome[]
}

/** Dispatches calls and collects what was told. */
export async function dispatch(
  tools: readonly Tool[],
  calls: readonly ToolCallPart[],
  options: Partial<Turn> = {},
): Promise<Dispatched> {
  const records: CallRecord[] = []
  await dispatchCalls(calls, {
    tools: toolTable(tools),
    session: Session.fromUserMessage('Do it.'),
    signal: new AbortController().signal,
    onResult: record => void records.push(record),
    ...options,
  })
  return { records, outcomes: records.map(record => record.outcome) }
}

/** The one outcome of one call. */
export async function outcomeOf(
  used: Tool,
  args: Json = {},
  options: Partial<Turn> = {},
): Promise<ToolOutcome> {
  const { outcomes } = await dispatch([used], [call(used.name, args, 'c0')], options)
  return outcomes[0] as ToolOutcome
}

export function result(
  callId: string,
  name: string,
  outcome: ToolOutcome = { kind: 'value', value: 1 },
): ChunkInput {
  return { kind: 'tool-result', callId, tool: name, outcome }
}

/** A promise that somebody else settles. */
export function gate<T = void>(): { promise: Promise<T>; open(value: T): void } {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { promise, open: resolve }
}

/** Lets everything that can go on without outside events go on. */
export function settle(): Promise<void> {
  return new Promise(resolve => setImmediate(() => setImmediate(resolve)))
}
