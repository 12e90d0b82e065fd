import { z } from 'zod'

// The Agent Trajectory Interchange Format, version 1.8, written down a second time from its specification (Harbor's RFC 0001):
// what a reader refuses. Objects are closed; what is custom lies in `extra`.

const extra = z.record(z.string(), z.unknown()).nullish()
const count = z.number().int().nonnegative().nullish()

const part = z.union([
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({
    type: z.literal('image'),
    source: z.strictObject({
      media_type: z.enum(['image/jpeg', 'image/png', 'image/gif', 'image/webp']),
      path: z.string(),
    }),
  }),
  z.strictObject({
    type: z.literal('audio'),
    source: z.strictObject({
      media_type: z.string().regex(/^audio\/(wav|mpeg|mp4|aac|ogg|flac|webm|aiff)$/),
      path: z.string(),
      duration_sec: z.number().nonnegative().nullish(),
    }),
  }),
])
const content = z.union([z.string(), z.array(part)])

const toolCall = z.strictObject({
  tool_call_id: z.string(),
  function_name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  extra,
})

const result = z.strictObject({
  source_call_id: z.string().nullish(),
  content: content.nullish(),
  subagent_trajectory_ref: z.array(z.unknown()).nullish(),
  extra,
})

const metrics = z.strictObject({
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  cost_usd: z.number().nonnegative().nullish(),
  prompt_token_ids: z.array(z.number().int()).nullish(),
  completion_token_ids: z.array(z.number().int()).nullish(),
  logprobs: z.array(z.number()).nullish(),
  extra,
})

const step = z.strictObject({
  step_id: z.number().int().min(1),
  timestamp: z.iso.datetime({ offset: true }).nullish(),
  source: z.enum(['system', 'user', 'agent']),
  model_name: z.string().nullish(),
  reasoning_effort: z.union([z.string(), z.number()]).nullish(),
  message: content,
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
  observation: z.strictObject({ results: z.array(result) }).nullish(),
  metrics: metrics.nullish(),
  is_copied_context: z.boolean().nullish(),
  llm_call_count: count,
  extra,
})

const trajectory = z.strictObject({
  schema_version: z.string().regex(/^ATIF-v1\.[0-8]$/),
  session_id: z.string().nullish(),
  trajectory_id: z.string().nullish(),
  agent: z.strictObject({
    name: z.string(),
    version: z.string(),
    model_name: z.string().nullish(),
    tool_definitions: z.array(z.record(z.string(), z.unknown())).nullish(),
    extra,
  }),
  steps: z.array(step).min(1),
  notes: z.string().nullish(),
  final_metrics: z
    .strictObject({
      total_prompt_tokens: count,
      total_completion_tokens: count,
      total_cached_tokens: count,
      total_cost_usd: z.number().nonnegative().nullish(),
      total_steps: count,
      extra,
    })
    .nullish(),
  continued_trajectory_ref: z.string().nullish(),
  subagent_trajectories: z.array(z.unknown()).nullish(),
  extra,
})

const agentOnly = ['model_name', 'reasoning_effort', 'reasoning_content', 'tool_calls', 'metrics'] as const

/** What a reader of the format would refuse, one sentence each. */
export function atifProblems(document: unknown): string[] {
  const parsed = trajectory.safeParse(document)
  if (!parsed.success)
    return parsed.error.issues.map(issue => `${issue.path.join('.')} ${issue.code} ${issue.message}`)
  const problems: string[] = []
  for (const [i, step] of parsed.data.steps.entries()) {
    if (step.step_id !== i + 1) problems.push(`steps.${i}.step_id is ${step.step_id}`)
    for (const field of agentOnly)
      if (step.source !== 'agent' && step[field] != null) problems.push(`steps.${i}.${field} is of agents`)
    const calls = (step.tool_calls ?? []).map(call => call.tool_call_id)
    if (new Set(calls).size < calls.length) problems.push(`steps.${i}.tool_calls has an id twice`)
    for (const { source_call_id: id } of step.observation?.results ?? [])
      if (id != null && !calls.includes(id))
        problems.push(`steps.${i}: source_call_id ${id} is no call of it`)
    const isSilent = step.llm_call_count === 0
    if (isSilent && (step.metrics != null || step.reasoning_content != null))
      problems.push(`steps.${i} has metrics or reasoning without a model call`)
    const { prompt_tokens: prompt, cached_tokens: cached } = step.metrics ?? {}
    if (prompt != null && cached != null && cached > prompt)
      problems.push(`steps.${i} read more from the cache than there was`)
  }
  return problems
}
