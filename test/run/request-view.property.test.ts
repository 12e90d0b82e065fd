import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { type Dialect, dialectOf } from '../../src/model/drivers/ai-sdk/dialect.ts'
import { type Conversations, toPrompt } from '../../src/model/drivers/ai-sdk/prompt.ts'
import type { AiSdkModel, PromptMessage } from '../../src/model/drivers/ai-sdk/types.ts'
import { requestMessages } from '../../src/run/prompt.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Message } from '../../src/session/message.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { tool } from '../../src/tool/tool.ts'
import { anySteps, grow } from '../session/tree.ts'

const instructions: readonly (readonly Message[])[] = [
  [],
  [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }],
  [{ role: 'system', content: [{ type: 'text', text: 'Be thorough.' }] }],
]
const dialects = ['openai.responses', 'openai.chat', 'anthropic.messages'].map(provider =>
  dialectOf({ specificationVersion: 'v4', provider, modelId: 'test' } as unknown as AiSdkModel),
)

/** The same history as chunks of which nobody has made anything yet. */
const anew = (session: Session): Session => Session.fromJSONL(session.toJSONL())

/** What a provider is sent, or why nothing can be: some histories hold what no provider takes. */
function promptOr(messages: readonly Message[], dialect: Dialect, kept?: Conversations): unknown {
  try {
    return toPrompt(messages, dialect, true, kept)
  } catch (error) {
    return (error as Error).message
  }
}

describe('what is kept of a conversation between requests', () => {
  it('gives every session of any tree, asked about in any order, the request that it would have alone', async () => {
    const asks = fc.array(fc.tuple(fc.nat(1000), fc.nat(2)), { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(anySteps, asks, async (steps, order) => {
        const sessions = await grow(steps)
        const kept = dialects.map((): Conversations => new WeakMap())
        for (const [n, agent] of order) {
          const session = sessions[n % sessions.length] as Session
          const before = instructions[agent] as readonly Message[]
          const shown = requestMessages(session, before)
          const alone = requestMessages(anew(session), before)
          expect(shown).toEqual(alone)
          expect(alone.slice(before.length)).toEqual(session.messages())
          for (const [i, dialect] of dialects.entries())
            expect(promptOr(shown, dialect, kept[i])).toEqual(promptOr(alone, dialect))
        }
      }),
      { numRuns: 200 },
    )
  })

  it('holds where every turn is taken several times', () => {
    let session = Session.fromUserMessage('0')
    for (let turn = 0; turn < 100; turn++) {
      const answers = ['a', 'b', 'c'].map(text =>
        session.append(
          {
            kind: 'assistant',
            content: [{ type: 'tool-call', id: `call_${turn % 5}`, name: 'look', args: {} }],
          },
          {
            kind: 'tool-result',
            callId: `call_${turn % 5}`,
            tool: 'look',
            outcome: { kind: 'value', value: text },
          },
          { kind: 'assistant', content: `${text} ${turn}` },
          { kind: 'user', content: `${turn + 1}` },
        ),
      )
      for (const answer of answers) expect(requestMessages(answer)).toEqual(answer.messages())
      session = answers[turn % 3] as Session
    }
    // Back to the beginning, behind which most of what is kept belongs to another branch.
    const again = session.rewind(4).user('again')
    expect(requestMessages(again)).toEqual(again.messages())
  })

  it('holds where branches answer an open call differently', () => {
    const call = (id: string) => ({ type: 'tool-call', id, name: 'look', args: {} }) as const
    const result = (callId: string, value: string) =>
      ({ kind: 'tool-result', callId, tool: 'look', outcome: { kind: 'value', value } }) as const
    const open = Session.fromUserMessage('a').append(
      { kind: 'assistant', content: [call('one'), call('two')] },
      result('one', 'first'),
    )
    for (const asked of [open, ...['b', 'c'].map(text => open.append(result('two', text)).user(text)), open])
      expect(requestMessages(asked)).toEqual(anew(asked).messages())
  })

  it('has nothing of a summary that comes later', () => {
    const answered = Session.fromUserMessage('a').append({ kind: 'assistant', content: 'b' })
    const replaced = [answered.chunks.at(0)?.id as string]
    const summarised = answered.append({ kind: 'compress', replaced, summary: 'in short' }).user('c')
    for (const asked of [summarised, answered, answered.user('d'), summarised])
      expect(requestMessages(asked)).toEqual(anew(asked).messages())
  })

  it('is what was made before, and not made again', async () => {
    const first = Session.fromUserMessage('a').append({ kind: 'assistant', content: 'b' }).user('c')
    const before = requestMessages(first)
    const next = first.append({ kind: 'assistant', content: 'd' })
    const forks = ['e', 'f'].map(text => requestMessages(next.fork().user(text)))
    for (const messages of forks)
      for (const [i, message] of before.entries()) expect(messages[i]).toBe(message)
    expect(forks[0]?.[3]).toBe(forks[1]?.[3])
    expect(() => Object.assign(before[0] as Message, { role: 'assistant' })).toThrow(TypeError)
  })
})

describe('agents that are called side by side on branches of one session', () => {
  it('each send what a fresh process would send', async () => {
    const calls = fc.array(
      fc.array(fc.record({ on: fc.nat(1000), agent: fc.nat(1), rounds: fc.nat(2) }), { maxLength: 4 }),
      { minLength: 1, maxLength: 5 },
    )
    await using store = await openStore('memory:')
    await using runtime = createRuntime({ store, workspaces: false })
    await fc.assert(
      fc.asyncProperty(anySteps, calls, async (steps, batches) => {
        const model = new Asked()
        const sessions = (await grow(steps)).filter(session =>
          Array.isArray(promptOr(anew(session).messages(), dialectOf(model))),
        )
        const agents = ['Be brief.', 'Be thorough.'].map(
          text => new Agent(text, { model, tools: [look], builtins: false }),
        )
        for (const batch of batches) {
          const jobs = batch.map(({ on, agent, rounds }) => {
            const input = (sessions[on % sessions.length] as Session).fork().user(model.job(rounds))
            return { input, agent: agents[agent] as Agent, prompts: model.lastJob }
          })
          const outputs = await Promise.all(jobs.map(({ agent, input }) => agent(input, { runtime })))
          for (const [n, { input, agent, prompts }] of jobs.entries()) {
            const output = outputs[n] as Session
            sessions.push(output)
            const answers = output.chunks.slice(input.length).filter(chunk => chunk.kind === 'assistant')
            expect(prompts).toHaveLength(answers.length)
            for (const [i, { index }] of answers.entries()) {
              const asked = anew(output.rewind(index - 1))
              const messages = requestMessages(asked, agent.prompt.messages())
              expect(prompts[i]).toBe(JSON.stringify(toPrompt(messages, dialectOf(model), true)))
            }
          }
        }
      }),
      { numRuns: 60 },
    )
  })
})

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object', properties: {} },
  effect: 'pure',
  run: () => 'seen',
})

interface Job {
  readonly rounds: number
  /** As they were when they arrived. */
  readonly prompts: string[]
}

/** A model of a provider with prefix caching that calls a tool as often as a job says, always under the same id, and remembers what it was sent. */
class Asked {
  readonly specificationVersion = 'v4'
  readonly provider = 'anthropic.messages'
  readonly modelId = 'test'
  readonly supportedUrls = {}
  readonly #jobs: Job[] = []

  /** What to ask for; see `lastJob`. */
  job(rounds: number): string {
    this.#jobs.push({ rounds, prompts: [] })
    return `job ${this.#jobs.length - 1}.`
  }

  /** The prompts of the job that was made last. */
  get lastJob(): readonly string[] {
    return this.#jobs.at(-1)?.prompts ?? []
  }

  async doGenerate({ prompt }: { prompt: PromptMessage[] }) {
    const texts = prompt.flatMap(({ role, content }) =>
      role === 'user' && typeof content !== 'string' ? content.map(part => String(part.text)) : [],
    )
    const number = texts.findLast(text => /^job \d+\.$/.test(text))?.slice(4, -1)
    const { rounds, prompts } = this.#jobs[Number(number)] as Job
    prompts.push(JSON.stringify(prompt))
    // Others come in between.
    await new Promise(setImmediate)
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    }
    const call = { type: 'tool-call', toolCallId: 'call_0', toolName: 'look', input: '{}' }
    return prompts.length <= rounds
      ? { content: [call], finishReason: { unified: 'tool-calls', raw: 'tools' }, usage, warnings: [] }
      : {
          content: [{ type: 'text', text: `Done ${number}.` }],
          finishReason: { unified: 'stop', raw: 'stop' },
          usage,
          warnings: [],
        }
  }

  async doStream(): Promise<never> {
    throw new Error('this model does not stream')
  }
}
