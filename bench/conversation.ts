import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateText, type ModelMessage } from 'ai'
import { Agent, createRuntime, type Runtime, Session } from 'openrath'
import { openStore } from 'openrath/store'
import {
  type Bench,
  collectGarbage,
  compareTime,
  exponent,
  judge,
  type Line,
  processorTime,
  ratioAtMost,
  spread,
  type Task,
  valueBelow,
} from './harness.ts'
import { historyOf, sdkMessages } from './support/history.ts'
import { zeroLatency } from './support/zero-latency.ts'

type Report = (line: Line) => void

const instructions = 'Be brief.'
/** Sizes at which a conversation is looked at as it grows: total time against them gives the exponent. */
const sizes = [625, 1_250, 2_500, 5_000] as const
const turns = 5_000

/**
 * Conversations that go on: every turn is a call of an agent with one user message, on the session that the call before it returned, and
 * both sides get the same AI SDK model, which answers at once. Ours keeps every session; `ai` keeps an array in memory. Processor time.
 */
export const bench: Bench = async report => {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  try {
    await using memory = createRuntime({ store: 'memory:' })
    await using normal = createRuntime({
      store: await openStore(`sqlite:${join(folder, 'rath.db')}`, { durability: 'normal' }),
    })
    await conversations(report, memory, normal)
    await behind(report, memory)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Side {
  readonly name: string
  /** Has a conversation of so many turns, and says when each of the sizes was reached. */
  run(turns: number, reached: (turn: number) => void): Promise<void>
}

async function conversations(report: Report, memory: Runtime, sqlite: Runtime): Promise<void> {
  const sides: Side[] = [
    { name: 'openrath, memory:', run: (count, reached) => ourConversation(memory, count, reached) },
    { name: 'openrath, SQLite, normal', run: (count, reached) => ourConversation(sqlite, count, reached) },
    { name: 'ai generateText, in memory', run: sdkConversation },
  ]
  const perTurn = sides.map((): number[] => [])
  const slopes = sides.map((): number[] => [])
  for (const side of sides) await side.run(500, () => {})
  for (let round = 0; round < 3; round++) {
    const order = [...sides.keys()]
    if (round % 2) order.reverse()
    for (const i of order) {
      collectGarbage()
      const totals: number[] = []
      const start = processorTime()
      await (sides[i] as Side).run(turns, () => void totals.push(processorTime() - start))
      perTurn[i]?.push((totals.at(-1) as number) / turns)
      slopes[i]?.push(exponent(sizes, totals))
    }
  }
  const theirs = perTurn[2] as number[]
  const baseline = { value: spread(theirs).median, unit: 'ns', name: (sides[2] as Side).name } as const
  for (const [i, side] of sides.slice(0, 2).entries()) {
    const ours = perTurn[i] as number[]
    report(
      judge(
        {
          what: `a turn of a conversation of ${turns.toLocaleString('en')}`,
          ours: { value: spread(ours).median, unit: 'ns', name: side.name },
          baseline,
          ratio: spread(ours.map((value, round) => value / (theirs[round] as number))),
        },
        valueBelow(1e6),
      ),
    )
  }
  for (const [i, side] of sides.entries()) {
    const value = spread(slopes[i] as number[]).median
    const line = {
      what: '…, growth of the whole',
      ours: { value, unit: 'exponent', name: side.name },
    } as const
    report(judge(line, i === 2 ? undefined : { of: 'value', limit: 1.15, inclusive: true }))
  }
}

async function ourConversation(
  runtime: Runtime,
  count: number,
  reached: (turn: number) => void,
): Promise<void> {
  const agent = new Agent(instructions, { model: zeroLatency(0), builtins: false })
  let session = Session.create('empty')
  for (let turn = 1; turn <= count; turn++) {
    session = await agent(session.user(`Question ${turn}?`), { runtime })
    if (isSize(turn)) reached(turn)
  }
}

/** As the documentation of `ai` does it: the messages of a response go behind those of the request. */
async function sdkConversation(count: number, reached: (turn: number) => void): Promise<void> {
  const model = zeroLatency(0)
  const messages: ModelMessage[] = []
  for (let turn = 1; turn <= count; turn++) {
    messages.push({ role: 'user', content: `Question ${turn}?` })
    const { response } = await generateText({ model, instructions, messages })
    messages.push(...response.messages)
    if (isSize(turn)) reached(turn)
  }
}

function isSize(turn: number): boolean {
  return (sizes as readonly number[]).includes(turn)
}

/** Calls of one round on long histories, one after the other. */
async function behind(report: Report, runtime: Runtime): Promise<void> {
  const clock = { clock: 'processor', rounds: 7, warmUps: 3 } as const
  report(
    await compareTime(
      'a call of one round behind 10,000 messages',
      ourCalls(10_000, runtime),
      sdkCalls(10_000),
      { ...clock, target: ratioAtMost(0.3) },
    ),
  )
  const long = ourCalls(100_000, runtime)
  const short = ourCalls(1_000, runtime)
  report(
    await compareTime('a call of one round behind 100,000 chunks', long, short, {
      ...clock,
      target: ratioAtMost(3),
    }),
  )
  report(
    await compareTime(
      '… on a fork of its own each',
      ourCalls(100_000, runtime, true),
      ourCalls(1_000, runtime, true),
      clock,
    ),
  )
}

const calls = 40

function ourCalls(chunks: number, runtime: Runtime, isForked = false): Task {
  const agent = new Agent(instructions, { model: zeroLatency(0), builtins: false })
  let session = historyOf(chunks)
  return {
    name: `behind ${chunks.toLocaleString('en')}`,
    operations: calls,
    run: async () => {
      for (let i = 0; i < calls; i++) {
        const asked = isForked ? session.fork().user('go') : session.user('go')
        const answered = await agent(asked, { runtime })
        if (!isForked) session = answered
      }
    },
  }
}

function sdkCalls(count: number): Task {
  const model = zeroLatency(0)
  const messages: ModelMessage[] = sdkMessages(historyOf(count))
  return {
    name: 'ai generateText',
    operations: calls,
    run: async () => {
      for (let i = 0; i < calls; i++) {
        messages.push({ role: 'user', content: 'go' })
        const { response } = await generateText({ model, instructions, messages })
        messages.push(...response.messages)
      }
    },
  }
}
