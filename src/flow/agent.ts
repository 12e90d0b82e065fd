import type { StandardSchemaV1 } from '@standard-schema/spec'
import { RathError, show } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Committed, Hit, Memory } from '../memory/spec.ts'
import type { Provider } from '../model/provider.ts'
import { type ModelChoice, type ResolvedModel, resolveLater } from '../model/resolve.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { BudgetLimits } from '../run/budget.ts'
import { type AutoCompress, checkAutoCompress } from '../run/compress.ts'
import { type Approve, type CallOptions, currentContext, type OnBudget } from '../run/context.ts'
import type { EventListener } from '../run/event.ts'
import { runLoop } from '../run/loop.ts'
import { AgentMemory, type RecallOptions, type RememberOptions } from '../run/memory/agent-memory.ts'
import type { CommitMemoryOptions } from '../run/memory/commit.ts'
import { checkMemory, type MemoryLike } from '../run/memory/memories.ts'
import { checkRecall, type RecallPolicy } from '../run/memory/recall-policy.ts'
import { invalidOutput, type OutputSpec, outputSpec } from '../run/output.ts'
import type { PendingSession, SessionInput } from '../run/pending-session.ts'
import { Session, valueFrom } from '../session/session.ts'
import { cutShort } from '../session/summary.ts'
import { type BuiltinName, builtinTools, isBuiltinTool, withBuiltins } from '../tool/builtin/builtin-tools.ts'
import { type FlowToolCall, toTool } from '../tool/flow-tool-call.ts'
import type { Policy } from '../tool/policy/policy.ts'
import type { Tool } from '../tool/spec.ts'
import { toolTable } from '../tool/tool.ts'
import { type AgentToolOptions, agentBehind, agentTool } from './agent-tool.ts'
import type { AgentParam, Needs } from './needs.ts'
import { type Module, Workflow } from './workflow.ts'

const usualRounds = 64

/** Calling an instance runs it; `output` of what that returns is the answer by the schema of its `output`. Merges with the class below. */
export interface Agent<Output = unknown> {
  (input: SessionInput, options?: CallOptions): PendingSession<Output>
}

/** The small reusable layer: a prompt, a model and tools. Calling it runs the loop and returns the session it made. */
export class Agent<Output = unknown> extends Workflow {
  readonly prompt: Session
  readonly maxRounds: number
  readonly #options: AgentOptions<Output>
  readonly #output: OutputSpec | undefined
  readonly #memory: AgentMemory | undefined
  #model: ResolvedModel
  #tools: ReadonlyMap<string, Tool>
  /** Without the built-in ones. */
  #ownTools: ReadonlyMap<string, Tool> | undefined

  constructor(prompt: string, options: AgentOptions<Output> = {}) {
    super()
    checkPrompt(prompt)
    checkOptionNames(options)
    const { name, description = '', model, provider, tools = [], builtins, maxRounds = usualRounds } = options
    if (!Number.isSafeInteger(maxRounds) || maxRounds < 1) {
      throw new RathError(
        'invalid-argument',
        `maxRounds must be a whole number from 1, not ${show(maxRounds)}.`,
      )
    }
    Object.defineProperty(this, 'name', { value: name ?? new.target.name, configurable: true })
    this.description = description
    this.prompt = prompt === '' ? Session.create('empty') : Session.fromAgentPrompt(prompt)
    this.#model = resolveLater(model ?? provider)
    this.maxRounds = maxRounds
    if (options.autoCompress) checkAutoCompress(options.autoCompress)
    this.#options = options
    this.#memory = memoryOf(options, this)
    this.#output = options.output && outputSpec(options.output, this.name)
    this.#tools = withBuiltins(builtinTools(builtins), tools.map(toTool))
  }

  /** Whom it asks. Setting it, or `to`, counts for calls made afterwards. */
  get model(): ResolvedModel {
    return this.#model
  }

  set model(model: ModelChoice) {
    this.#model = resolveLater(model)
  }

  get param(): AgentParam {
    return {
      session: this.prompt,
      provider: this.#model.provider ?? this.#model,
      memory: this.#options.memory,
    }
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()]
  }

  addTool(added: Tool | FlowToolCall): void {
    const builtins = new Set(builtinTools())
    const taken = this.tools.filter(one => builtins.has(one))
    const others = this.tools.filter(one => !builtins.has(one))
    this.#tools = withBuiltins(taken, [...others, toTool(added)])
    this.#ownTools = undefined
  }

  removeTool(name: string): void {
    if (!this.#tools.has(name)) {
      throw new RathError(
        'invalid-argument',
        `${this.name} has no tool ${show(name)}; it has ${[...this.#tools.keys()].join(', ') || 'none'}.`,
      )
    }
    this.#tools = toolTable(this.tools.filter(one => one.name !== name))
    this.#ownTools = undefined
  }

  override get callOptions(): CallOptions {
    const { budget = this.model.budget, onBudget, policy, approve, approveWithin, onEvent } = this.#options
    return {
      ...(budget && { budget }),
      ...(onBudget && { onBudget }),
      ...(policy && { policy }),
      ...(approve && { approve }),
      ...(approveWithin !== undefined && { approveWithin }),
      ...(onEvent && { onEvent }),
    }
  }

  /** Besides what a subclass holds in fields: agents that are its tools. */
  override namedChildren(): ReadonlyMap<string, Module> {
    const children = new Map(super.namedChildren())
    for (const { name, agent } of this.#agentTools()) children.set(`tools.${name}`, agent)
    return children
  }

  override needs(): Needs {
    const { budget, approve } = this.callOptions
    return {
      agent: this.param,
      model: this.#model,
      tools: this.tools,
      ...(this.#memory && { memories: [this.#memory.name] }),
      ...(budget && { budget }),
      ...(approve && { approves: true }),
      unknown: [
        `how many of its ${this.maxRounds} rounds it takes, and which tools the model calls`,
        ...(this.#memory?.isKnown === false
          ? [`where its memory ${this.#memory.name} is: the default runtime has none of that name`]
          : []),
      ],
    }
  }

  override extraRepr(): string {
    const all = builtinTools()
    const builtins = this.tools.filter(one => all.includes(one))
    const names = this.tools.filter(one => !all.includes(one)).map(one => one.name)
    if (builtins.length === all.length) names.push('built-ins')
    else names.push(...builtins.map(one => one.name))
    return names.length > 0 ? `${this.#model.id}, tools: ${names.join(', ')}` : this.#model.id
  }

  *#agentTools(): Generator<{ name: string; agent: Workflow }> {
    for (const one of this.#tools.values()) {
      const agent = agentBehind(one)
      if (agent) yield { name: one.name, agent }
    }
  }

  forward(session: Session): Promise<Session> {
    const context = currentContext()
    if (!context) {
      throw new RathError(
        'invalid-argument',
        `Call the agent itself, ${this.name}(session), and not its forward.`,
      )
    }
    const model = context.runtime.models.instead(this.#model)
    const { retry = model.retry ?? {} } = this.#options
    return runLoop(
      {
        prompt: this.prompt,
        model,
        tools: this.#toolsFor(session),
        settings: model.settings,
        retry,
        maxRounds: this.maxRounds,
        output: this.#output,
        autoCompress: this.#options.autoCompress,
        memory: this.#memory,
        commit: commitOptions(this.#options.commitOnForward),
      },
      session,
      context,
    )
  }

  /** Without a place there is nothing for the built-in tools to work on; naming them in `builtins` offers them all the same. */
  #toolsFor({ placement }: Session): ReadonlyMap<string, Tool> {
    if (placement || this.#options.builtins !== undefined) return this.#tools
    this.#ownTools ??= toolTable(this.tools.filter(one => !isBuiltinTool(one)))
    return this.#ownTools
  }

  /** The answer of a session as the value that the schema in `output` makes of it. A call that was cut short has none. */
  async outputOf(session: Session): Promise<Output> {
    if (this.#output === undefined) {
      throw new RathError(
        'invalid-argument',
        `${this.name} has no output to read; give it a schema: new Agent(prompt, { output: z.object(…) }).`,
      )
    }
    const stop = cutShort(valueFrom(session).tip)
    if (stop) {
      throw new RathError(
        'output-invalid',
        `There is no answer to read: the call was cut short. ${stop.message}`,
      )
    }
    const { text } = session
    const { value, problem } = await this.#output.read(text)
    if (problem !== undefined) throw invalidOutput(text, problem)
    return value as Output
  }

  /** Keeps a text. On a branch, others see it when the branch is committed; inside `forward`, the branch is that of the session it was given. */
  remember(text: string, options?: RememberOptions): Promise<Memory> {
    return this.#remembering().remember(text, options)
  }

  /** What fits a query, best first; nothing that fits is an empty list. */
  recall(query: string, options?: RecallOptions): Promise<readonly Hit[]> {
    return this.#remembering().recall(query, options)
  }

  /** Keeps what a session said and did so that it can be found again, or what a model makes of it. Again writes only what is new. */
  commit(session: Session, options?: CommitMemoryOptions): Promise<Committed> {
    return this.#remembering().commit(session, options)
  }

  /** Ends an entry, by its id or URI; it is found no more. Returns how many there were. */
  forget(ref: string): Promise<number> {
    return this.#remembering().forget(ref)
  }

  /** Lets go of its memory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#memory?.release()
  }

  #remembering(): AgentMemory {
    if (this.#memory) return this.#memory
    throw new RathError(
      'memory-missing',
      `${this.name} has no memory; give it one: new Agent(prompt, { memory: 'local' }).`,
    )
  }

  /** This agent as a tool of another: it works on a session of its own and its last text is the result. */
  asTool(options: AgentToolOptions): Tool {
    return agentTool(this, options)
  }
}

function memoryOf({ memory, recall }: AgentOptions, agent: Agent): AgentMemory | undefined {
  checkRecall(recall)
  if (memory === undefined) return undefined
  checkMemory(memory)
  return new AgentMemory(memory, agent, recall, () => agent.name)
}

function commitOptions(commit: AgentOptions['commitOnForward']): CommitMemoryOptions | undefined {
  return commit === true ? {} : commit || undefined
}

/** `Output` is what `outputOf` gives: the type of the schema in `output`. */
export interface AgentOptions<Output = unknown> {
  /**
   * A name such as `openai/gpt-5.5`, a `Provider`, or any AI SDK model; by default what the environment or config file names. Of a list, the next one is asked where
   * one gives no answer.
   */
  readonly model?: ModelChoice
  readonly provider?: Provider
  /** Its part of the producer path; by default the field of the workflow that holds it, else `Agent`. */
  readonly name?: string
  readonly description?: string
  readonly tools?: readonly (Tool | FlowToolCall)[]
  /** The tools for files and commands. By default all of them, for sessions that are placed with `to`; otherwise all, those named, or none, placed or not. */
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

/** The first line of somebody who comes from another library, as it is written here. */
function checkPrompt(prompt: unknown): void {
  if (typeof prompt === 'string') return
  const { instructions, system, prompt: text, name, model } = (prompt ?? {}) as Record<string, unknown>
  const said = [instructions, system, text].find(one => typeof one === 'string') ?? 'You are …'
  const options = Object.entries({ name, model }).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}: ${typeof value === 'string' ? show(value) : '…'}`],
  )
  const rest = options.length > 0 ? `, { ${options.join(', ')} }` : ''
  throw new RathError(
    'invalid-argument',
    `An Agent takes its instructions first and its options second, not ${show(prompt)}: new Agent(${show(said)}${rest}).`,
  )
}

/** What options of other libraries are called here. */
const elsewhere: Readonly<Record<string, string>> = {
  instructions: 'the first argument: new Agent(instructions, options)',
  system: 'the first argument: new Agent(system, options)',
  systemPrompt: 'the first argument: new Agent(systemPrompt, options)',
  prompt: 'the first argument: new Agent(prompt, options)',
  maxSteps: 'maxRounds',
  maxTurns: 'maxRounds',
  stopWhen: 'maxRounds or budget',
  outputType: 'output',
  schema: 'output',
  responseFormat: 'output',
  handoffs: 'tools: [handoffTo(agent)]',
  temperature: "a setting of the model: new Provider({ model: 'openai/gpt-5.5', temperature: 0 })",
  maxTokens: "a setting of the model: new Provider({ model: 'openai/gpt-5.5', maxTokens: 1000 })",
  maxRetries: 'retry: { limit: 3 }',
  checkpointer: 'createRuntime({ store }): every run is kept',
}

/** An option that does nothing would be taken for one that works. */
function checkOptionNames(options: object): void {
  const unknown = Object.keys(options).filter(name => !Object.hasOwn(optionNames, name))
  if (unknown.length === 0) return
  const hints = unknown.flatMap(name => (elsewhere[name] ? [`${name} is ${elsewhere[name]}`] : []))
  const hint = hints.length > 0 ? ` Here ${hints.join('; ')}.` : ''
  throw new RathError(
    'invalid-argument',
    `An Agent has no option ${unknown.map(show).join(', ')}.${hint} It takes ${Object.keys(optionNames).join(', ')}.`,
  )
}
