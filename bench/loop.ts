import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateText, jsonSchema, tool as sdkTool, stepCountIs, streamText } from 'ai'
import { Agent, configure, createRuntime, type Runtime, type Session, tool } from 'openrath'
import { openStore } from 'openrath/store'
import {
  type Bench,
  compareTime,
  judge,
  type Line,
  ratioAtMost,
  spread,
  type Target,
  type Task,
  valueBelow,
} from './harness.ts'
import { historyOf, sdkMessages } from './support/history.ts'
import type { InProcess } from './support/in-process.ts'
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
/** As tools are by default: nobody knows what else it changes, so its intent is on the disk before it runs. */
const anywhere = tool({
  name: 'add',
  description: 'Adds.',
  input: parameters,
  run: ({ a, b }: { a: number; b: number }) => a + b,
})
const sdkAdd = sdkTool({
  description: 'Adds.',
  inputSchema: jsonSchema<{ a: number; b: number }>(parameters),
  execute: async ({ a, b }) => a + b,
})

/**
 * A round is one model answer with one tool call. Every loop gets the same AI SDK model object, which answers at once, and the
 * same tool. Ours records every chunk with its digest; the others record nothing. Processor time.
 */
export const bench: Bench = async report => {
  configure({ store: await openStore('memory:') })
  await rounds(report)
  await stored(report)
  await inProcesses(report)
  await fanOut(report)
  await deltas(report)
}

const clock = { clock: 'processor' } as const

async function rounds(report: Report): Promise<void> {
  const many = 20
  for (const [history, times, target] of [
    [10, 40, 0.6],
    [1_000, 10, undefined],
    [10_000, 2, 0.3],
  ] as const) {
    const past = historyOf(history)
    // Both compile for long: what a process pays that has run for a while is measured.
    const options = {
      ...clock,
      rounds: 7,
      warmUps: history === 10 ? 20 : 3,
      ...(target && { target: ratioAtMost(target) }),
    }
    report(
      await compareTime(
        `tool round, history of ${history.toLocaleString('en')} chunks`,
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
          { ...clock, rounds: 5 },
        ),
      )
    if (history === 10) await withKeys(report, past, many, times)
    report(
      await compareTime(
        `… beside the hand-written floor`,
        ourRounds(past, many, times),
        floorRounds(past, many, times),
        { ...clock, rounds: 5 },
      ),
    )
  }
}

/** Rounds that survive: `ai` has nothing to set against them but what it takes without a record. */
async function stored(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  const past = historyOf(10)
  const many = 20
  try {
    for (const [durability, limit, times] of [
      ['normal', 350e3, 10],
      ['full', 450e3, 4],
    ] as const) {
      await using store = await openStore(`sqlite:${join(folder, `${durability}.db`)}`, { durability })
      await using runtime = createRuntime({ store })
      const options = { ...clock, rounds: 7, warmUps: 5 }
      report(
        await compareTime(
          `tool round, SQLite, ${durability}`,
          ourRounds(past, many, times, runtime),
          sdkRounds(past, many, times),
          { ...options, target: valueBelow(limit) },
        ),
      )
      const external = { ...ourRounds(past, many, times, runtime, anywhere), name: 'external' }
      const pure = { ...ourRounds(past, many, times, runtime), name: 'pure' }
      report(await compareTime('… of a tool with the default effect, `external`', external, pure, options))
      // Only this clock sees the disk.
      if (durability === 'full')
        report(await compareTime('…, in wall time', external, pure, { rounds: 5, warmUps: 1 }))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What only a process of its own can show: code that nothing has run before, and how much memory it takes at most. */
async function inProcesses(report: Report): Promise<void> {
  const sides = ['openrath', 'ai'] as const
  const first = { openrath: [] as InProcess[], ai: [] as InProcess[] }
  for (let round = 0; round < 5; round++)
    for (const side of round % 2 ? [...sides].reverse() : sides) first[side].push(apart(side))
  const line = (
    what: string,
    of: (result: InProcess) => number,
    unit: 'ns' | 'bytes',
    target?: Target,
  ): Line => {
    const [ours, theirs] = sides.map(side => first[side].map(of)) as [number[], number[]]
    return judge(
      {
        what,
        ours: { value: spread(ours).median, unit, name: 'openrath' },
        baseline: { value: spread(theirs).median, unit, name: 'ai generateText' },
        ratio: spread(ours.map((value, i) => value / (theirs[i] as number))),
      },
      target,
    )
  }
  report(line('the first 100 rounds of a process, per round', ({ first }) => first, 'ns', ratioAtMost(0.5)))
  report(
    line('memory that 1,000 agents under way take, at most', ({ peak }) => peak, 'bytes', ratioAtMost(0.5)),
  )
  report(line('… of it in live objects, when all have answered once', ({ live }) => live, 'bytes'))
}

function apart(side: 'openrath' | 'ai'): InProcess {
  const file = join(import.meta.dirname, 'support/in-process.ts')
  const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', file, side], { encoding: 'utf8' })
  if (stdout === '') throw new Error(`the process of ${side} ended without a result: ${stderr}`)
  return JSON.parse(stdout) as InProcess
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
      { ...clock, rounds: 5, warmUps: 10 },
    ),
  )
}

function ourRounds(past: Session, many: number, times: number, runtime?: Runtime, using = add): Task {
  const agent = new Agent('Be brief.', {
    model: zeroLatency(many),
    tools: [using],
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
      { ...clock, rounds: 5, warmUps: 3, target: ratioAtMost(0.5) },
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
  report(
    await compareTime('a streamed delta', ours, sdk, {
      ...clock,
      rounds: 5,
      warmUps: 2,
      target: ratioAtMost(0.1),
    }),
  )
  report(await compareTime('… beside the stream alone', ours, bare, { ...clock, rounds: 5, warmUps: 2 }))
}

type Prompt = Parameters<ReturnType<typeof zeroLatency>['doGenerate']>[0]['prompt']

function floorPrompt(past: Session): Prompt {
  return past
    .messages()
    .map(message => ({ role: message.role, content: 'content' in message ? message.content : [] })) as Prompt
}
