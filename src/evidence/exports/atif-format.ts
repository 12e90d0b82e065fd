import type { JsonObject } from '../../base/json.ts'

/** Harbor's RFC 0001; objects hold these members and no others. What we add lies in `extra`. */
export const atifVersion = 'ATIF-v1.8'

export interface AtifTrajectory {
  readonly schema_version: typeof atifVersion
  readonly session_id: string
  readonly trajectory_id: string
  readonly agent: { readonly name: string; readonly version: string; readonly model_name?: string }
  readonly steps: readonly AtifStep[]
  readonly final_metrics: {
    readonly total_prompt_tokens: number
    readonly total_completion_tokens: number
    readonly total_cached_tokens: number
    readonly total_cost_usd?: number
    readonly total_steps: number
  }
  /** Those of sub-agents, which results name by their id. */
  readonly subagent_trajectories?: readonly AtifTrajectory[]
  readonly extra: JsonObject
}

/** `model_name`, `reasoning_content`, `tool_calls` and `metrics` are of agent steps only. */
export interface AtifStep {
  /** From 1, without gaps. */
  readonly step_id: number
  /** ISO 8601. */
  readonly timestamp: string
  readonly source: 'system' | 'user' | 'agent'
  readonly message: AtifContent
  readonly model_name?: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly AtifToolCall[]
  readonly observation?: { readonly results: readonly AtifResult[] }
  readonly metrics?: AtifMetrics
  readonly llm_call_count?: number
  readonly extra: JsonObject
}

/** Parts where there is more than text. */
export type AtifContent = string | readonly AtifPart[]

export type AtifPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image' | 'audio'
      readonly source: { readonly media_type: string; readonly path: string }
    }

export interface AtifToolCall {
  readonly tool_call_id: string
  readonly function_name: string
  readonly arguments: JsonObject
}

export interface AtifResult {
  /** A call of the same step; absent when the call is not in it. */
  readonly source_call_id?: string
  readonly content: AtifContent
  readonly subagent_trajectory_ref?: readonly AtifSubagentRef[]
  readonly extra: JsonObject
}

/** Names one of the trajectories in `subagent_trajectories`. */
export interface AtifSubagentRef {
  readonly session_id: string
  readonly trajectory_id: string
}

/** Cached tokens are part of the prompt's. */
export interface AtifMetrics {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cached_tokens: number
  readonly cost_usd?: number
  readonly extra?: JsonObject
}
