import type { Json } from '../base/json.ts'
import type { ModelDelta } from '../model/spec.ts'
import type { Chunk, ToolOutcome } from '../session/chunk.ts'
import type { ToolCallPart } from '../session/part.ts'

/** Where an event comes from. */
export interface EventSource {
  /** Producer path: the workflows and agents from the outermost call inwards, `Review/writer`. */
  readonly by: string
  /** The session that is being made. */
  readonly sessionId: string
}

/** Everything that can be followed while a run works, one stream for all of it. */
export type RunEvent = EventSource &
  (
    | { readonly type: 'run-start' }
    | ModelDelta
    | { readonly type: 'tool-call'; readonly call: ToolCallPart }
    | { readonly type: 'tool-progress'; readonly callId: string; readonly data: Json }
    | {
        readonly type: 'tool-result'
        readonly callId: string
        readonly tool: string
        readonly outcome: ToolOutcome
      }
    | {
        readonly type: 'retry'
        readonly attempt: number
        readonly waitMs: number
        readonly error: string
        readonly message: string
      }
    | {
        readonly type: 'memory-recall'
        readonly store: string
        readonly hits: number
        readonly error?: string
      }
    | {
        readonly type: 'approval-request'
        readonly approval: string
        readonly callId?: string
        readonly tool?: string
        readonly args?: Json
        readonly question?: string
      }
    | { readonly type: 'chunk'; readonly chunk: Chunk }
    | { readonly type: 'run-end'; readonly status: RunEnd; readonly error?: string }
  )

/** `waiting`: for a person, who approves or reviews; the run can be resumed. */
export type RunEnd = 'done' | 'failed' | 'cancelled' | 'waiting'

/** An event before it is known who emits it. */
export type EventBody = RunEvent extends infer E
  ? E extends RunEvent
    ? Omit<E, keyof EventSource>
    : never
  : never

export type EventListener = (event: RunEvent) => void
