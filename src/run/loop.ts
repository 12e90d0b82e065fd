import { AsyncLocalStorage } from 'node:async_hooks'
import { cancelledError } from '../base/abort.ts'
import type { Digest } from '../base/digest.ts'
import { RathError } from '../base/errors.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { Model, ModelAnswer, ModelRequest, ModelSettings, ToolDescription } from '../model/spec.ts'
import type { Sandbox } from '../sandbox/spec.ts'
import type { Chunk, ChunkInput } from '../session/chunk.ts'
import type { Message } from '../session/message.ts'
import { type ToolCallPart, textOf } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import type { ApprovalDecision, ApprovalRequest } from '../tool/approval.ts'
import { readToolResult } from '../tool/big-output.ts'
import { dispatchCalls } from '../tool/dispatch.ts'
import type { PathFiles } from '../tool/policy/path-root.ts'
import { hostFiles } from '../tool/policy/policy.ts'
import type { Tool } from '../tool/spec.ts'
import { AskFailed, ask, BudgetSpent } from './ask.ts'
import { type AutoCompress, makeRoom } from './auto-compress.ts'
import { type Approve, emit, type RunContext } from './context.ts'
import { Deadline } from './deadline.ts'
import type { OutputSpec } from './output.ts'
import { keepPrompt, promptDigest } from './prompt.ts'
import { Recorder } from './recorder.ts'
import { RequestView } from './request-view.ts'

/** What the loop needs to know of an agent. */
export interface AgentSpec {
  /** The instructions, as a session of their own. */
  readonly prompt: Session
  readonly model: Model
  readonly tools: ReadonlyMap<string, Tool>
  readonly settings: ModelSettings
  readonly retry: RetryOptions
  readonly maxRounds: number
  readonly output: OutputSpec | undefined
  readonly autoCompress?: AutoCompress | undefined
}

/**
 * Request, answer, tools, until the model is done, `maxRounds`, a budget or a cancel. Everything is recorded before the next
 * thing happens; whatever ends the loop, the session so far is returned or stands on the error, and a later call goes on from it.
 */
export async function runLoop(agent: AgentSpec, input: Session, context: RunContext): Promise<Session> {
  const recorder = new Recorder(input, context)
  try {
    await new Loop(agent, recorder, context).run()
  } catch (thrown) {
    throw Object.assign(asRathError(thrown), { session: recorder.session })
  }
  return recorder.session
}

/** The turns whose tools are running around this code. */
const runningTurns = new AsyncLocalStorage<readonly Chunk[]>()

class Loop {
  readonly #agent: AgentSpec
  readonly #recorder: Recorder
  readonly #context: RunContext
  readonly #instructions: Message[]
  readonly #view = new RequestView()
  readonly #prompt: Digest | undefined
  readonly #descriptions: readonly ToolDescription[]
  #repaired = false

  constructor(agent: AgentSpec, recorder: Recorder, context: RunContext) {
    this.#agent = { ...agent, tools: withReader(agent.tools) }
    this.#recorder = recorder
    this.#context = context
    this.#instructions = agent.prompt.messages()
    this.#prompt = promptDigest(agent.prompt)
    this.#descriptions = [...this.#agent.tools.values()].map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
  }

  async run(): Promise<void> {
    if (this.#prompt) await keepPrompt(this.#agent.prompt, this.#prompt, await this.#context.runtime.store)
    await this.#finishTurn()
    for (let round = 0; ; round++) {
      const { signal, budget } = this.#context
      if (signal.aborted) throw cancelledError(signal)
      if (round >= this.#agent.maxRounds) {
        return this.#stop(
          'max-rounds',
          `The agent was stopped after ${round} rounds with its work unfinished; raise maxRounds, or call it again to go on.`,
        )
      }
      try {
        if (this.#agent.autoCompress)
          await makeRoom(this.#agent, () => this.#request(), this.#recorder, this.#context)
        const { spent } = budget
        if (spent) return this.#stopSpent(spent)
        const { answer, failures } = await ask(
          this.#agent.model,
          this.#request(),
          this.#agent.retry,
          this.#context,
        )
        this.#recorder.add(...failures, this.#answerChunk(answer))
        if (await this.#isDone(answer)) return
      } catch (error) {
        if (error instanceof BudgetSpent) return this.#stopSpent(error.message)
        if (!(error instanceof AskFailed)) throw error
        if (!signal.aborted) await this.#recorder.record(...error.chunks)
        throw error.cause
      }
    }
  }

  /** A session handed over in the middle of a turn: the calls that have no result yet are run first. */
  async #finishTurn(): Promise<void> {
    // A tool may hand its own session on: the turn it runs in is being finished already.
    const running = runningTurns.getStore() ?? []
    const calls = this.#recorder.session.pending.flatMap(pending =>
      pending.kind === 'tool-call' && !running.includes(pending.chunk) ? [pending.call] : [],
    )
    if (calls.length > 0) await this.#runTools(calls)
  }

  async #isDone(answer: ModelAnswer): Promise<boolean> {
    const calls = answer.content.filter(part => part.type === 'tool-call')
    if (calls.length > 0) {
      // Before a tool changes anything, the store knows that it was asked to.
      if (calls.some(call => this.#changes(call))) await this.#recorder.keep()
      await this.#runTools(calls)
      return false
    }
    await this.#recorder.keep()
    return this.#accepts(textOf(answer.content))
  }

  #request(): ModelRequest {
    const { settings, output } = this.#agent
    return {
      messages: this.#instructions.concat(this.#view.messages(this.#recorder.session)),
      tools: this.#descriptions,
      settings,
      ...(output && { output: { name: output.name, schema: output.schema } }),
    }
  }

  #answerChunk({ content, finishReason, usage, model, extras }: ModelAnswer): ChunkInput {
    return {
      kind: 'assistant',
      content,
      model: model ?? this.#agent.model.id,
      finishReason,
      ...(usage && { usage }),
      ...(this.#prompt !== undefined && { prompt: this.#prompt }),
      ...(extras && { extras }),
    }
  }

  async #runTools(calls: readonly ToolCallPart[]): Promise<void> {
    const turn = this.#recorder.session.chunks.findLast(chunk => chunk.kind === 'assistant')
    const running = runningTurns.getStore() ?? []
    using deadline = new Deadline(this.#context)
    await runningTurns.run(turn ? [...running, turn] : running, () => this.#dispatch(calls, deadline.signal))
    await this.#recorder.keep()
    if (deadline.passed) throw new BudgetSpent('the time is over')
    if (deadline.signal.aborted) throw cancelledError(deadline.signal)
  }

  #dispatch(calls: readonly ToolCallPart[], signal: AbortSignal): Promise<void> {
    const { policy, approve, by, runtime } = this.#context
    const { session } = this.#recorder
    const sandbox = () => runtime.places.open(session, signal)
    return dispatchCalls(calls, {
      tools: this.#agent.tools,
      session,
      signal,
      policy,
      by,
      sandbox,
      ...(session.placement && { files: async () => workspaceFiles(await sandbox()) }),
      ...(approve && { approve: request => this.#approve(request, approve) }),
      onStart: ({ call }) => emit(this.#context, { type: 'tool-call', call }),
      onProgress: (callId, data) => emit(this.#context, { type: 'tool-progress', callId, data }),
      onResult: async ({ call, args, outcome, durationMs, approvals }) => {
        emit(this.#context, { type: 'tool-result', callId: call.id, tool: call.name, outcome })
        this.#recorder.add(...approvals, {
          kind: 'tool-result',
          callId: call.id,
          tool: call.name,
          args,
          outcome,
          durationMs,
        })
        if (this.#changes(call)) await this.#recorder.keep()
      },
    })
  }

  /** Whether a call may do more than look. */
  #changes(call: ToolCallPart): boolean {
    const effect = this.#agent.tools.get(call.name)?.effect
    return effect !== undefined && effect !== 'pure' && effect !== 'read'
  }

  async #approve(request: ApprovalRequest, approve: Approve): Promise<ApprovalDecision> {
    const { approval, call, args, question } = request
    emit(this.#context, {
      type: 'approval-request',
      approval,
      callId: call.id,
      tool: call.name,
      args,
      question,
    })
    return approve(request)
  }

  /** Checks a structured answer. One that does not fit is sent back once with what is wrong; then the run fails with the text. */
  async #accepts(text: string): Promise<boolean> {
    const { output } = this.#agent
    if (!output) return true
    const problems = await output.problemsWith(text)
    if (problems === undefined) return true
    if (this.#repaired) {
      throw new RathError(
        'output-invalid',
        `The answer does not fit the asked output: ${problems}\nThe answer was: ${text.slice(0, 2000)}`,
        {
          data: { text: text.slice(0, 10_000) },
        },
      )
    }
    this.#repaired = true
    await this.#recorder.record({
      kind: 'user',
      content: `Your answer does not fit the asked output: ${problems}\nAnswer again with JSON that does, and nothing else.`,
    })
    return false
  }

  #stopSpent(spent: string): Promise<void> {
    return this.#stop(
      'budget-spent',
      `The budget is used up: ${spent}. Call the agent again with a larger one to go on.`,
    )
  }

  #stop(error: string, message: string): Promise<void> {
    return this.#recorder.record({ kind: 'error', error, message, retry: 'after' })
  }
}

/** A long result is shown to the model head and tail; with this tool it reads the rest. */
function withReader(tools: ReadonlyMap<string, Tool>): ReadonlyMap<string, Tool> {
  return tools.size === 0 || tools.has(readToolResult.name)
    ? tools
    : new Map([...tools, [readToolResult.name, readToolResult]])
}

/** The workspace as path rules see it; undefined for one that this machine cannot look into. */
async function workspaceFiles({ hostPath }: Sandbox): Promise<PathFiles | undefined> {
  return hostPath === undefined ? undefined : hostFiles(hostPath)
}

function asRathError(thrown: unknown): RathError {
  if (thrown instanceof RathError) return thrown
  return new RathError('run-failed', thrown instanceof Error ? thrown.message : String(thrown), {
    cause: thrown,
  })
}
