import { cancelledError } from '../base/abort.ts'
import type { Digest } from '../base/digest.ts'
import type { RetryOptions } from '../model/retry.ts'
import type { Model, ModelAnswer, ModelRequest, ModelSettings } from '../model/spec.ts'
import type { Chunk, ChunkInput } from '../session/chunk.ts'
import { unfinished } from '../session/fold.ts'
import { callsIn, type ToolCallPart, textOf } from '../session/part.ts'
import type { Session } from '../session/session.ts'
import { dispatchCalls } from '../tool/dispatch.ts'
import type { Tool } from '../tool/spec.ts'
import type { Turn } from '../tool/turn.ts'
import { Questions } from './approve/approvals.ts'
import { type About, AskFailed, ask, BudgetSpent, describe, type Tools, withReader } from './ask.ts'
import { Deadline } from './budget.ts'
import { recordEnd, type Stop, spentAt, stopCall } from './budget-end.ts'
import { type AutoCompress, makeRoom } from './compress.ts'
import { emit, type RunContext } from './context.ts'
import { FramePart, scopeIn } from './frame.ts'
import type { AgentMemory } from './memory/agent-memory.ts'
import type { CommitMemoryOptions } from './memory/commit.ts'
import { invalidOutput, type OutputSpec } from './output.ts'
import { instructionsOf, keepPrompt, promptDigest, requestMessages } from './prompt.ts'
import { type Recorder, recorded } from './recorder.ts'
import { changes, passRuling, passTool, pathFiles, type ToolTurn, toolChunks } from './tool-call.ts'

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
  readonly memory?: AgentMemory | undefined
  /** How the memory keeps what was said and done, after each call. */
  readonly commit?: CommitMemoryOptions | undefined
}

/**
 * Request, answer, tools, until the model is done, `maxRounds`, a budget or a cancel. Everything is recorded before the next
 * thing happens; whatever ends the loop, the session so far is returned or stands on the error, and a later call goes on from it.
 */
export async function runLoop(agent: AgentSpec, input: Session, context: RunContext): Promise<Session> {
  return recorded(input, context, async recorder => {
    await new Loop(agent, recorder, context).run()
    if (agent.memory && agent.commit) await agent.memory.commitInto(recorder, context, agent.commit)
  })
}

/** The turns whose tools are running around this code. */
const runningTurns = new FramePart<readonly Chunk[]>()

class Loop {
  readonly #agent: AgentSpec
  readonly #recorder: Recorder
  readonly #context: RunContext
  readonly #prompt: Digest | undefined
  readonly #tools: Tools | undefined
  readonly #about: About
  #repaired = false

  constructor(agent: AgentSpec, recorder: Recorder, context: RunContext) {
    this.#agent = { ...agent, tools: withReader(agent.tools) }
    this.#recorder = recorder
    this.#context = context
    this.#prompt = promptDigest(agent.prompt, recorder.store)
    this.#tools = describe(agent.tools, this.#agent.tools, recorder.store)
    this.#about = {
      prompt: this.#prompt,
      settings: agent.settings,
      ...this.#output(),
      ...(this.#tools && { tools: this.#tools }),
    }
  }

  async run(): Promise<void> {
    if (this.#prompt) await keepPrompt(this.#agent.prompt, this.#prompt, this.#recorder.store)
    await this.#finishTurn()
    await this.#agent.memory?.recallInto(this.#recorder, this.#context)
    for (let round = 0; ; round++) {
      const { signal } = this.#context
      if (signal.aborted) throw cancelledError(signal)
      if (round >= this.#agent.maxRounds) {
        return this.#stop(
          'max-rounds',
          `The agent was stopped after ${round === 1 ? '1 round' : `${round} rounds`} with its work unfinished; raise maxRounds, or call it again to go on.`,
        )
      }
      try {
        let spent = spentAt(this.#recorder, this.#context)
        if (!spent && this.#agent.autoCompress) {
          await makeRoom(this.#agent, () => this.#request(), this.#recorder, this.#context)
          spent = spentAt(this.#recorder, this.#context)
        }
        if (spent) return this.#stopSpent(spent)
        const { answer, failures, at } = await this.#ask()
        this.#recorder.add(...failures, this.#answerChunk(answer, at))
        if (await this.#isDone(answer)) return
      } catch (error) {
        if (error instanceof BudgetSpent) {
          this.#recorder.add(...error.chunks)
          return this.#stopSpent(error.message)
        }
        if (!(error instanceof AskFailed)) throw error
        if (!signal.aborted) await this.#recorder.record(...lastEndsTurn(error.chunks))
        throw error.cause
      }
    }
  }

  /** A session handed over in the middle of a turn: the calls that have no result yet are run first. */
  async #finishTurn(): Promise<void> {
    // A tool may hand its own session on: the turn it runs in is being finished already.
    const running = runningTurns.here ?? []
    const calls = this.#recorder.session.pending.flatMap(pending =>
      pending.kind === 'tool-call' && !running.includes(pending.chunk) ? [pending.call] : [],
    )
    if (calls.length > 0) await this.#runTools(calls)
  }

  async #isDone(answer: ModelAnswer): Promise<boolean> {
    const calls = callsIn(answer.content)
    if (calls.length > 0) {
      if (calls.some(call => changes(this.#agent.tools.get(call.name)))) await this.#recorder.keepSoon()
      await this.#runTools(calls)
      return false
    }
    await this.#recorder.keepLast()
    return this.#accepts(textOf(answer.content))
  }

  #ask() {
    const { model, retry } = this.#agent
    const { session, store } = this.#recorder
    const request = () => this.#request()
    return ask({ model, retry, session, store, about: this.#about, request }, this.#context)
  }

  #request(): ModelRequest {
    return {
      messages: requestMessages(this.#recorder.session, instructionsOf(this.#agent.prompt)),
      tools: this.#tools?.descriptions ?? [],
      settings: this.#agent.settings,
      ...this.#output(),
    }
  }

  #output(): Pick<ModelRequest, 'output'> {
    const { output } = this.#agent
    return output ? { output: { name: output.name, schema: output.schema } } : {}
  }

  #answerChunk(
    { content, finishReason, usage, model, extras }: ModelAnswer,
    at: number | undefined,
  ): ChunkInput {
    return {
      kind: 'assistant',
      ...(at !== undefined && { at }),
      content,
      model: model ?? this.#agent.model.id,
      finishReason,
      ...(usage && { usage }),
      ...(this.#prompt !== undefined && { prompt: this.#prompt }),
      ...(extras && { extras }),
    }
  }

  async #runTools(calls: readonly ToolCallPart[]): Promise<void> {
    const asked = this.#recorder.session.chunks.findLast(chunk => chunk.kind === 'assistant')
    const running = runningTurns.here ?? []
    using deadline = new Deadline(this.#context)
    const turn = new AgentTurn(calls, this.#agent.tools, this.#recorder, this.#context, deadline.signal)
    try {
      await runningTurns.run(asked ? [...running, asked] : running, () => dispatchCalls(calls, turn))
    } catch (error) {
      await turn.questions.settle(error)
      throw error
    } finally {
      this.#recorder.add(...turn.questions.open)
    }
    const keeping = this.#recorder.keepSoon()
    if (keeping) await keeping
    if (deadline.passed) throw new BudgetSpent('the time is over')
    if (deadline.signal.aborted) throw cancelledError(deadline.signal)
  }

  /** Checks a structured answer. One that does not fit is sent back once with what is wrong; then the run fails with the text. */
  async #accepts(text: string): Promise<boolean> {
    const { output } = this.#agent
    if (!output) return true
    const { problem } = await output.read(text)
    if (problem === undefined) return true
    if (this.#repaired) throw invalidOutput(text, problem)
    this.#repaired = true
    await this.#recorder.record({
      kind: 'user',
      content: `Your answer does not fit the asked output: ${problem}\nAnswer again with JSON that does, and nothing else.`,
    })
    return false
  }

  async #stopSpent(spent: string): Promise<void> {
    await recordEnd(spent, this.#recorder, this.#context)
    return this.#stop(
      'budget-spent',
      `The budget is used up: ${spent}. Call the agent again with a larger one to go on.`,
    )
  }

  #stop(error: Stop['error'], message: string): Promise<void> {
    return stopCall({ error, message, detail: unfinished }, this.#recorder, this.#context)
  }
}

/** A turn of an agent: each call is an effect, people are asked through the run, and results go on the session that the call makes. */
class AgentTurn implements Turn, ToolTurn {
  readonly tools: Turn['tools']
  readonly session: Session
  readonly context: RunContext
  readonly store: Recorder['store']
  readonly signal: AbortSignal
  readonly policy: Turn['policy']
  readonly by: string
  readonly sample: string
  readonly questions: Questions
  readonly #calls: readonly ToolCallPart[]
  readonly #recorder: Recorder

  constructor(
    calls: readonly ToolCallPart[],
    tools: Turn['tools'],
    recorder: Recorder,
    context: RunContext,
    signal: AbortSignal,
  ) {
    this.#calls = calls
    this.#recorder = recorder
    this.tools = tools
    this.session = recorder.session
    this.store = recorder.store
    this.context = context
    this.signal = signal
    this.policy = context.policy
    this.by = context.by
    this.sample = scopeIn(context).sample
    this.questions = new Questions(context)
  }

  readonly open: ToolTurn['open'] = () => {
    const { session, context, signal } = this
    return context.runtime.places.open({ session, run: context.runId, signal })
  }

  readonly sandbox = async () => (await this.open()).sandbox

  get files(): Turn['files'] {
    return this.session.placement && (async () => pathFiles(await this.sandbox()))
  }

  readonly ruled: Required<Turn>['ruled'] = (call, rule) => passRuling(call, rule, this)

  readonly approve: Required<Turn>['approve'] = request =>
    this.questions.ask(request, this.#calls.indexOf(request.call))

  readonly onStart: Required<Turn>['onStart'] = ({ call, args }) => {
    if (this.context.events.observed)
      emit(this.context, { type: 'tool-call', call: { ...call, args: this.store.clean(args) } })
  }

  readonly around: Required<Turn>['around'] = (call, run) => passTool(call, run, this)

  readonly onProgress: Required<Turn>['onProgress'] = (callId, data) => {
    if (this.context.events.observed)
      emit(this.context, { type: 'tool-progress', callId, data: this.store.clean(data) })
  }

  readonly onResult: Turn['onResult'] = record => {
    const { call, outcome } = record
    emit(this.context, { type: 'tool-result', callId: call.id, tool: call.name, outcome })
    this.#recorder.add(...toolChunks(record))
    return changes(this.tools.get(call.name)) ? this.#recorder.keepSoon() : undefined
  }
}

/** Attempts that failed: with the last of them, the turn. */
function lastEndsTurn(attempts: readonly ChunkInput[]): readonly ChunkInput[] {
  const last = attempts.at(-1) as ChunkInput & { readonly kind: 'error' }
  return [...attempts.slice(0, -1), { ...last, detail: unfinished }]
}
