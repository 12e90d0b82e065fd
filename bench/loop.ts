import { hash } from 'node:crypto'
import { generateText, jsonSchema, tool as sdkTool, stepCountIs, streamText } from 'ai'
import { Agent, type ChunkInput, configure, createRuntime, type Runtime, Session, tool } from 'openrath'
import { openStore } from 'openrath/store'
import { type Bench, compareTime, type Line, ratioAtMost, type Task } from './harness.ts'
import { manyDeltas, zeroLatency } from './support/zero-latency.ts'

type Report = (line: Line) => void

const parameters = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
} as const
const add = tool({
  name: 'add',
  description: 'Adds.',
  input: parameters,
  effect: 'pure',
  run: ({ a, b }: { a: number; b: number }) => a + b,
})
const sdkAdd = sdkTool({
  description: 'Adds.',
  inputSchema: jsonSchema<{ a: number; b: number }>(parameters),
  execute: async ({ a, b }) => a + b,
})

/**
 * A round is one model answer with one tool call. Every loop gets the same AI SDK model object, which answers at once, and the
 * same tool. Ours records every chunk with its digest in a memory store; the others record nothing.
 */
export const bench: Bench = async report => {
  configure({ store: await openStore('memory:') })
  await rounds(report)
  await fanOut(report)
  await deltas(report)
}

async function rounds(report: Report): Promise<void> {
  const many = 20
  for (const [history, times] of [
    [10, 40],
    [1_000, 10],
    [10_000, 2],
  ] as const) {
    const past = historyOf(history)
    // Both compile for long: what a process pays that has run for a while is measured.
    const options = {
      rounds: 7,
      warmUps: history === 10 ? 20 : 3,
      ...(history === 10 && { target: ratioAtMost(1 / 8) }),
    }
    report(
      await compareTime(
        `tool round, history of ${history} chunks`,
        ourRounds(past, many, times),
        sdkRounds(past, many, times),
        options,
      ),
    )
    if (history === 10)
      report(
        await compareTime(
          '… beside the record alone, written by hand',
          ourRounds(past, many, times),
          recordRounds(many, times),
          { rounds: 5 },
        ),
      )
    if (history === 10) await withKeys(report, past, many, times)
    report(
      await compareTime(
        `… beside the hand-written floor`,
        ourRounds(past, many, times),
        floorRounds(past, many, times),
        {
          rounds: 5,
        },
      ),
    )
  }
}

/** Whoever has keys in the environment has them looked for in everything that is written. */
async function withKeys(report: Report, past: Session, many: number, times: number): Promise<void> {
  const secrets = Object.fromEntries(
    ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GITHUB_TOKEN'].map(name => [name, `sk-${name}-0123456789`]),
  )
  await using runtime = createRuntime({ store: await openStore('memory:', { secrets }) })
  report(
    await compareTime(
      '… with three keys to keep out',
      { ...ourRounds(past, many, times, runtime), name: 'openrath, with keys' },
      ourRounds(past, many, times),
      { rounds: 5, warmUps: 10 },
    ),
  )
}

function ourRounds(past: Session, many: number, times: number, runtime?: Runtime): Task {
  const agent = new Agent('Be brief.', {
    model: zeroLatency(many),
    tools: [add],
    builtins: false,
    maxRounds: many + 1,
  })
  return {
    name: 'openrath',
    operations: times * (many + 1),
    run: () => inTurn(times, () => agent(past, runtime && { runtime })),
  }
}

function sdkRounds(past: Session, many: number, times: number): Task {
  const model = zeroLatency(many)
  const messages = sdkMessages(past)
  return {
    name: 'ai generateText',
    operations: times * (many + 1),
    run: () =>
      inTurn(times, () =>
        generateText({
          model,
          instructions: 'Be brief.',
          messages,
          tools: { add: sdkAdd },
          stopWhen: stepCountIs(many + 1),
        }),
      ),
  }
}

/** One after the other, often enough that compiled code is what is measured. */
async function inTurn(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await run()
}

/** What nobody can be faster than: call the model, call the function, push onto an array. */
function floorRounds(past: Session, many: number, times: number): Task {
  const model = zeroLatency(many)
  return {
    name: 'floor',
    operations: times * (many + 1),
    run: () => inTurn(times, () => floor(model, floorPrompt(past))),
  }
}

async function floor(model: ReturnType<typeof zeroLatency>, prompt: Prompt): Promise<Prompt> {
  for (;;) {
    const { content } = await model.doGenerate({ prompt })
    const call = content[0]
    if (call?.type !== 'tool-call') return prompt
    const { a, b } = JSON.parse(call.input)
    prompt.push({ role: 'assistant', content: [{ ...call, input: { a, b } }] })
    const output = { type: 'json', value: a + b } as const
    prompt.push({
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: call.toolCallId, toolName: call.toolName, output }],
    })
  }
}

/**
 * The least that puts a round on the record: no model, no tool, no loop. Two chunks, each with its id and the state behind it, and two
 * effects, each with a key, an intent and an outcome, as text in maps.
 */
function recordRounds(many: number, times: number): Task {
  const store = new Map<string, string>()
  return {
    name: 'record by hand',
    operations: times * (many + 1),
    run: () =>
      inTurn(times, async () => {
        let [head, state] = ['', '']
        for (let round = 0; round <= many; round++) {
          const call = { type: 'tool-call', id: `c${round}`, name: 'add', args: { a: 1, b: 2 } }
          const answer = { content: [call], finishReason: 'tool-calls', usage: { ...usage } }
          const outcome = { kind: 'value', value: 3 }
          const at = Date.now()
          for (const { kind, request, value, chunk } of [
            {
              kind: 'model',
              request: { model: 'bench/zero-latency', tools: head },
              value: answer,
              chunk: { ...answer, at },
            },
            {
              kind: 'tool',
              request: { tool: 'add', args: call.args },
              value: outcome,
              chunk: { callId: call.id, outcome, at },
            },
          ]) {
            const asked = JSON.stringify(request)
            const key = hash('sha256', `["${state}","${kind}",${asked},""]`)
            store.set(key, asked)
            store.set(`${key} outcome`, JSON.stringify({ value, ms: 0.1 }))
            const text = JSON.stringify({ kind, by: 'Agent', ...chunk })
            head = hash('sha256', `["${head}",${text}]`)
            state = hash('sha256', `["${state}",${JSON.stringify(value)}]`)
            store.set(head, text)
          }
        }
      }),
  }
}

const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0, totalTokens: 15 }

async function fanOut(report: Report): Promise<void> {
  const agents = 1_000
  const each = 3
  const past = historyOf(1)
  const agent = new Agent('Be brief.', { model: zeroLatency(each - 1), tools: [add], builtins: false })
  const model = zeroLatency(each - 1)
  const messages = sdkMessages(past)
  report(
    await compareTime(
      '1,000 concurrent agents of 3 rounds, per round',
      {
        name: 'openrath',
        operations: agents * each,
        run: () => Promise.all(Array.from({ length: agents }, () => agent(past))),
      },
      {
        name: 'ai generateText',
        operations: agents * each,
        run: () =>
          Promise.all(
            Array.from({ length: agents }, () =>
              generateText({
                model,
                instructions: 'Be brief.',
                messages,
                tools: { add: sdkAdd },
                stopWhen: stepCountIs(each),
              }),
            ),
          ),
      },
      { rounds: 3, warmUps: 1, target: ratioAtMost(1 / 8) },
    ),
  )
}

async function deltas(report: Report): Promise<void> {
  const count = 10_000
  const model = manyDeltas(count)
  const agent = new Agent('Be brief.', { model, builtins: false })
  const ours: Task = {
    name: 'openrath',
    operations: count,
    run: async () => {
      let seen = 0
      for await (const event of agent(historyOf(1))) if (event.type === 'text-delta') seen++
      if (seen !== count) throw new Error(`${seen} deltas instead of ${count}`)
    },
  }
  const sdk: Task = {
    name: 'ai streamText',
    operations: count,
    run: async () => {
      let seen = 0
      for await (const part of streamText({ model, prompt: 'go' }).stream)
        if (part.type === 'text-delta') seen++
      if (seen !== count) throw new Error(`${seen} deltas instead of ${count}`)
    },
  }
  const bare: Task = {
    name: 'the web stream alone',
    operations: count,
    run: async () => {
      const reader = (await model.doStream({ prompt: [] })).stream.getReader()
      while (!(await reader.read()).done);
    },
  }
  report(await compareTime('a streamed delta', ours, sdk, { rounds: 5, warmUps: 2 }))
  report(await compareTime('… beside the stream alone', ours, bare, { rounds: 5, warmUps: 2 }))
}

function historyOf(chunks: number): Session {
  const turns: ChunkInput[] = []
  for (let i = 1; i < chunks; i++) {
    turns.push(i % 2 ? { kind: 'assistant', text: `Answer ${i}.` } : { kind: 'user', text: `Question ${i}?` })
  }
  return Session.fromUserMessage('Question 0?')
    .append(...turns)
    .user('go')
}

function sdkMessages(past: Session): { role: 'user' | 'assistant'; content: string }[] {
  return past.chunks.map(chunk => ({
    role: chunk.kind === 'assistant' ? 'assistant' : 'user',
    content: chunk.text,
  }))
}

type Prompt = Parameters<ReturnType<typeof zeroLatency>['doGenerate']>[0]['prompt']

function floorPrompt(past: Session): Prompt {
  return past
    .messages()
    .map(message => ({ role: message.role, content: 'content' in message ? message.content : [] })) as Prompt
}
