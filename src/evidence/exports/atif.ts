import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { isPlainObject, type Json, type JsonObject } from '../../base/json.ts'
import { sessionsInside } from '../../run/graph/rows.ts'
import type { Chunk } from '../../session/chunk.ts'
import { outcomeText } from '../../session/chunk-text.ts'
import { type AnswerPart, type FilePart, type ImagePart, textOf } from '../../session/part.ts'
import type { Session } from '../../session/session.ts'
import type { Usage } from '../../session/usage.ts'
import {
  type AtifContent,
  type AtifMetrics,
  type AtifPart,
  type AtifResult,
  type AtifStep,
  type AtifToolCall,
  type AtifTrajectory,
  atifVersion,
} from './atif-format.ts'
import { addressOf, named } from './openai.ts'

export interface AtifOptions {
  /** Who acted; by default the producer of the first answer, of version `unknown`. */
  readonly agent?: { readonly name?: string; readonly version?: string }
  /** The instructions with a digest, which become a system step before the first answer that had them. */
  readonly prompt?: (digest: Digest) => string | undefined
  /** The sessions that tools made inside, by id: each that is found becomes a trajectory of a sub-agent. */
  readonly sessions?: (id: string) => Session | undefined
  /** Routes, verdicts, approvals, merges, placements and notes as system steps, too. Default false. */
  readonly evidence?: boolean
}

/**
 * A session as a trajectory in the Agent Trajectory Interchange Format: all that was said and done, also what a summary later replaced. A tool
 * call and its result are one step, as the format asks for.
 */
export function toATIF(session: Session, options: AtifOptions = {}): AtifTrajectory {
  const steps = new StepWriter(options)
  for (const chunk of session.chunks) steps.add(chunk)
  if (steps.steps.length === 0) {
    throw new RathError(
      'invalid-argument',
      `Session ${session.id} has nothing that a trajectory can show: it needs one step at least.`,
    )
  }
  const { subagents } = steps
  const first = session.chunks.find((chunk): chunk is Chunk<'assistant'> => chunk.kind === 'assistant')
  return {
    schema_version: atifVersion,
    session_id: session.id,
    trajectory_id: session.id,
    agent: {
      name: options.agent?.name ?? first?.by ?? 'openrath',
      version: options.agent?.version ?? 'unknown',
      ...(first?.model !== undefined && { model_name: first.model }),
    },
    steps: steps.steps,
    // Each trajectory counts its own calls; all of them add up to what the session spent.
    final_metrics: totals(session.ownUsage, steps.steps.length),
    ...(subagents.length > 0 && {
      subagent_trajectories: subagents.map(one => toATIF(one, { ...options, agent: {} })),
    }),
    extra: { format: 'openrath/session', head: session.head ?? null, branch: session.branch },
  }
}

type Draft = { -readonly [K in keyof AtifStep]: AtifStep[K] }

class StepWriter {
  readonly steps: Draft[] = []
  readonly subagents: Session[] = []
  readonly #options: AtifOptions
  readonly #prompts = new Set<Digest>()
  /** The step whose calls wait for results, and the ids of those that do. */
  #turn: { readonly step: Draft; readonly open: Map<string, string[]> } | undefined

  constructor(options: AtifOptions) {
    this.#options = options
  }

  add(chunk: Chunk): void {
    switch (chunk.kind) {
      case 'system':
      case 'user':
        this.#step(chunk, { source: chunk.kind, message: atifContent(chunk.content) })
        return
      case 'assistant':
        this.#answer(chunk)
        return
      case 'tool-result':
        this.#result(chunk)
        return
      case 'effect':
        this.#inside(chunk)
        if (this.#options.evidence) this.#step(chunk, { source: 'system', message: chunk.text })
        return
      case 'memory':
        if (chunk.injected) this.#step(chunk, { source: 'system', message: chunk.injected })
        return
      case 'compress':
      case 'error':
        this.#step(chunk, { source: 'system', message: chunk.text })
        return
      default:
        if (this.#options.evidence) this.#step(chunk, { source: 'system', message: chunk.text })
    }
  }

  #answer(chunk: Chunk<'assistant'>): void {
    this.#instructions(chunk)
    const open = new Map<string, string[]>()
    const calls: AtifToolCall[] = []
    for (const part of chunk.content) {
      if (part.type !== 'tool-call') continue
      // The format wants each id once in a step.
      const same = open.get(part.id) ?? []
      const id = same.length === 0 ? part.id : `${part.id}~${same.length + 1}`
      open.set(part.id, [...same, id])
      calls.push({ tool_call_id: id, function_name: part.name, arguments: atifArguments(part.args) })
    }
    const reasoning = chunk.content.flatMap(part => (part.type === 'reasoning' ? [part.text] : [])).join('\n')
    const step = this.#step(chunk, {
      source: 'agent',
      message: atifContent(chunk.content),
      ...(chunk.model !== undefined && { model_name: chunk.model }),
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(chunk.usage && { metrics: metricsOf(chunk.usage) }),
      llm_call_count: 1,
    })
    this.#turn = { step, open }
  }

  #instructions({ prompt, at }: Chunk<'assistant'>): void {
    if (prompt === undefined || this.#prompts.has(prompt)) return
    this.#prompts.add(prompt)
    const text = this.#options.prompt?.(prompt)
    if (text === undefined) return
    this.steps.push({
      step_id: this.steps.length + 1,
      timestamp: new Date(at).toISOString(),
      source: 'system',
      message: text,
      extra: { kind: 'prompt', prompt },
    })
  }

  #result(chunk: Chunk<'tool-result'>): void {
    const turn = this.#turn
    const inside = this.#inside(chunk)
    const callId = turn?.open.get(chunk.callId)?.shift()
    if (turn && callId !== undefined) {
      turn.step.observation = {
        results: [...(turn.step.observation?.results ?? []), atifResult(chunk, callId, inside)],
      }
      return
    }
    // The call lies elsewhere: on another branch, or in a step before this one. It cannot be named here.
    const result: AtifResult = atifResult(chunk, undefined, inside)
    this.#step(chunk, {
      source: 'system',
      message: `Result of ${chunk.tool}`,
      observation: { results: [result] },
    })
  }

  #inside(chunk: Chunk): string[] {
    return sessionsInside(chunk).filter(id => {
      const session = this.#options.sessions?.(id)
      if (session && session.length > 0) this.subagents.push(session)
      return session !== undefined && session.length > 0
    })
  }

  #step(chunk: Chunk, fields: Omit<Draft, 'step_id' | 'timestamp' | 'extra'>): Draft {
    const { id, kind, by, branch, at } = chunk
    const extra: JsonObject = {
      chunk: id,
      kind,
      ...(by !== undefined && { by }),
      ...(branch !== undefined && { branch }),
      ...(chunk.kind === 'assistant' &&
        chunk.finishReason !== undefined && { finish_reason: chunk.finishReason }),
      ...(chunk.kind === 'assistant' && chunk.prompt !== undefined && { prompt: chunk.prompt }),
    }
    const step = { step_id: this.steps.length + 1, timestamp: new Date(at).toISOString(), ...fields, extra }
    this.steps.push(step)
    return step
  }
}

function metricsOf(usage: Usage): AtifMetrics {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    cached_tokens: usage.cachedInputTokens,
    ...(usage.cost !== undefined && { cost_usd: usage.cost }),
    ...(usage.reasoningTokens > 0 && { extra: { reasoning_tokens: usage.reasoningTokens } }),
  }
}

function totals(usage: Usage, steps: number): AtifTrajectory['final_metrics'] {
  return {
    total_prompt_tokens: usage.inputTokens,
    total_completion_tokens: usage.outputTokens,
    total_cached_tokens: usage.cachedInputTokens,
    ...(usage.cost !== undefined && { total_cost_usd: usage.cost }),
    total_steps: steps,
  }
}

const images = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const sounds = new Set(
  ['wav', 'mpeg', 'mp4', 'aac', 'ogg', 'flac', 'webm', 'aiff'].map(name => `audio/${name}`),
)

/** Text as it is; parts where something else is among it. What the format has no type for is named in brackets. */
function atifContent(content: readonly AnswerPart[]): AtifContent {
  const shown = content.filter(part => part.type !== 'reasoning' && part.type !== 'tool-call')
  if (shown.every(part => part.type === 'text')) return textOf(shown)
  return shown.map(part => (part.type === 'text' ? { type: 'text', text: part.text } : media(part)))
}

function media(part: ImagePart | FilePart): AtifPart {
  const { mediaType } = part
  const type = images.has(mediaType) ? 'image' : sounds.has(mediaType) ? 'audio' : undefined
  if (type === undefined) return { type: 'text', text: named(part) }
  return { type, source: { media_type: mediaType, path: addressOf(part) } }
}

/** The format has objects for arguments; anything else a model wrote stands in one under `input`. */
function atifArguments(args: Json): JsonObject {
  return isPlainObject(args) ? (args as JsonObject) : { input: args }
}

function atifResult(
  chunk: Chunk<'tool-result'>,
  callId: string | undefined,
  inside: readonly string[],
): AtifResult {
  const { outcome, tool, id, durationMs } = chunk
  return {
    ...(callId !== undefined && { source_call_id: callId }),
    content:
      outcome.kind === 'value' && outcome.content ? atifContent(outcome.content) : outcomeText(outcome),
    ...(inside.length > 0 && {
      subagent_trajectory_ref: inside.map(id => ({ session_id: id, trajectory_id: id })),
    }),
    extra: {
      chunk: id,
      tool,
      outcome: outcome.kind,
      ...(durationMs !== undefined && { duration_ms: durationMs }),
    },
  }
}
