import type { StandardSchemaV1 } from '@standard-schema/spec'
import { RathError, show } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Provider } from '../model/provider.ts'
import type { ModelLike } from '../model/resolve.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { BudgetLimits } from '../run/budget.ts'
import type { AutoCompress } from '../run/compress.ts'
import type { Approve, OnBudget } from '../run/context.ts'
import type { EventListener } from '../run/event.ts'
import type { CommitMemoryOptions } from '../run/memory/commit.ts'
import type { MemoryLike } from '../run/memory/memories.ts'
import type { RecallPolicy } from '../run/memory/recall-policy.ts'
import type { BuiltinName } from '../tool/builtin/builtin-tools.ts'
import type { FlowToolCall } from '../tool/flow-tool-call.ts'
import type { Policy } from '../tool/policy/policy.ts'
import type { Tool } from '../tool/spec.ts'
/** `Output` is what `outputOf` gives: the type of the schema in `output`. */
export interface AgentOptions<Output = unknown> {
  /** A name such as `openai/gpt-5.5`, a `Provider`, or any AI SDK model; by default what the environment or config file names. */
  readonly model?: ModelLike
  readonly provider?: Provider
  /** Its part of the producer path; by default the field of the workflow that holds it, else `Agent`. */
  readonly name?: string
  readonly description?: string
  readonly tools?: readonly (Tool | FlowToolCall)[]
  /** The tools for files and commands where the session is placed: all by default, those named, or none. */
  readonly builtins?: boolean | readonly BuiltinName[]
  /** Recalled from before an answer, and for `remember`, `recall`, `commit` and `forget`: `'local'`, a preset, a spec, a backend, an open store. */
  readonly memory?: MemoryLike
  /** What is recalled and how the model is shown it; `false` recalls only when asked. */
  readonly recall?: RecallPolicy | false
  /** Commits the session to memory after each call, as it is or by a model. */
  readonly commitOnForward?: boolean | CommitMemoryOptions
  /** The answer must be JSON of this shape. */
  readonly output?: StandardSchemaV1<unknown, Output> | JsonObject
  /** Model calls before the run is cut short; 64 by default. */
  readonly maxRounds?: number
  /** Keeps a long run inside the model's limit: before a request `above` so many tokens, the history is summarised. */
  readonly autoCompress?: AutoCompress
  readonly budget?: BudgetLimits
  /** What a call does that `budget` or `maxRounds` ends: `return` its session, which says so in `stopped` (default), or `throw`. */
  readonly onBudget?: OnBudget
  readonly retry?: RetryOptions
  readonly policy?: Policy
  readonly approve?: Approve
  /** Milliseconds that a question to a person stays open; no limit by default. */
  readonly approveWithin?: number
  readonly onEvent?: EventListener
}

const optionNames: { readonly [Name in keyof Required<AgentOptions>]: true } = {
  model: true,
  provider: true,
  name: true,
  description: true,
  tools: true,
  builtins: true,
  memory: true,
  recall: true,
  commitOnForward: true,
  output: true,
  maxRounds: true,
  autoCompress: true,
  budget: true,
  onBudget: true,
  retry: true,
  policy: true,
  approve: true,
  approveWithin: true,
  onEvent: true,
}

/** An option that does nothing would be taken for one that works. */
export function checkOptionNames(options: object): void {
  const unknown = Object.keys(options).filter(name => !Object.hasOwn(optionNames, name))
  if (unknown.length === 0) return
  throw new RathError(
    'invalid-argument',
    `An Agent has no option ${unknown.map(show).join(', ')}; it takes ${Object.keys(optionNames).join(', ')}.`,
  )
}
