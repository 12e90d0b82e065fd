import type { StandardSchemaV1 } from '@standard-schema/spec'
import { RathError, show } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Provider } from '../model/provider.ts'
import { type ModelLike, type ResolvedModel, resolveModel } from '../model/resolve.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { BudgetLimits } from '../run/budget.ts'
import type { Approve, CallOptions } from '../run/context.ts'
import { currentContext } from '../run/context.ts'
import type { EventListener } from '../run/event.ts'
import { runLoop } from '../run/loop.ts'
import { type OutputSpec, outputSpec } from '../run/output.ts'
import { Session } from '../session/session.ts'
import { type BuiltinName, builtinTools, withBuiltins } from '../tool/builtin/builtin-tools.ts'
import { type FlowToolCall, toTool } from '../tool/flow-tool-call.ts'
import type { Policy } from '../tool/policy/policy.ts'
import type { Tool } from '../tool/spec.ts'
import { tool, toolTable } from '../tool/tool.ts'
import { Workflow } from './workflow.ts'

export interface AgentOptions {
  /** A name such as `openai/gpt-5.5`, a `Provider`, or any AI SDK model; by default what the environment or config file names. */
  readonly model?: ModelLike
  readonly provider?: Provider
  /** Its part of the producer path; `Agent` by default. */
  readonly name?: string
  readonly description?: string
  readonly tools?: readonly (Tool | FlowToolCall)[]
  /** The tools for files and commands where the session is placed: all by default, those named, or none. */
  readonly builtins?: boolean | readonly BuiltinName[]
  /** The answer must be JSON of this shape. */
  readonly output?: StandardSchemaV1 | JsonObject
  /** Model calls before the run is cut short; 64 by default. */
  readonly maxRounds?: number
  readonly budget?: BudgetLimits
  readonly retry?: RetryOptions
  readonly policy?: Policy
  readonly approve?: Approve
  readonly onEvent?: EventListener
}

const usualRounds = 64

/** The small reusable layer: a prompt, a model and tools. Calling it runs the loop and returns the session it made. */
export class Agent extends Workflow {
  readonly prompt: Session
  readonly model: ResolvedModel
  readonly maxRounds: number
  readonly #options: AgentOptions
  readonly #output: OutputSpec | undefined
  #tools: ReadonlyMap<string, Tool>

  constructor(prompt: string, options: AgentOptions = {}) {
    super()
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
    this.model = resolveModel(model ?? provider)
    this.maxRounds = maxRounds
    this.#options = options
    this.#output = options.output && outputSpec(options.output, this.name)
    this.#tools = withBuiltins(builtinTools(builtins), tools.map(toTool))
  }

  get tools(): readonly Tool[] {
    return [...this.#tools.values()]
  }

  addTool(added: Tool | FlowToolCall): void {
    const builtins = new Set(builtinTools())
    const taken = this.tools.filter(one => builtins.has(one))
    const others = this.tools.filter(one => !builtins.has(one))
    this.#tools = withBuiltins(taken, [...others, toTool(added)])
  }

  removeTool(name: string): void {
    if (!this.#tools.has(name)) {
      throw new RathError(
        'invalid-argument',
        `${this.name} has no tool ${show(name)}; it has ${[...this.#tools.keys()].join(', ') || 'none'}.`,
      )
    }
    this.#tools = toolTable(this.tools.filter(one => one.name !== name))
  }

  override get callOptions(): CallOptions {
    const { budget = this.model.budget, policy, approve, onEvent } = this.#options
    return {
      ...(budget && { budget }),
      ...(policy && { policy }),
      ...(approve && { approve }),
      ...(onEvent && { onEvent }),
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
    const { retry = this.model.retry ?? {} } = this.#options
    return runLoop(
      {
        prompt: this.prompt,
        model: this.model,
        tools: this.#tools,
        settings: this.model.settings,
        retry,
        maxRounds: this.maxRounds,
        output: this.#output,
      },
      session,
      context,
    )
  }

  /** This agent as a tool of another: it works on a session of its own and its last text is the result. */
  asTool({ name, description }: { readonly name: string; readonly description: string }): Tool {
    return tool({
      name,
      description,
      input: {
        type: 'object',
        properties: {
          request: { type: 'string', description: 'What to do, with everything needed to do it.' },
        },
        required: ['request'],
        additionalProperties: false,
      },
      run: async ({ request }: { request: string }, { signal, session }) => {
        const placement = session.placement
        const asked = Session.fromUserMessage(request)
        const own = placement ? asked.to(placement.backend, placement.spec) : asked
        if (placement) currentContext()?.runtime.places.share(own, session)
        const out = await this(own, { signal })
        return { text: out.text, session: out.id }
      },
    })
  }
}
