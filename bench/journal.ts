import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, createRuntime, Session, tool, Workflow } from 'openrath'
import { openStore, type Store } from 'openrath/store'
import {
  type Bench,
  compareTime,
  judge,
  type Line,
  spread,
  type Task,
  timeOnce,
  valueBelow,
} from './harness.ts'
import { zeroLatency } from './support/zero-latency.ts'

type Report = (line: Line) => void

/** OpenRath 2.0 publishes 38 runs a second for a run of one step; ten times that is one in so many nanoseconds. */
const tenTimesPublished = 1e9 / 380

/** What it costs that everything passes one door, on a store in memory and on one that survives a power cut. */
export const bench: Bench = async report => {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  try {
    await using memory = await openStore('memory:')
    await using sqlite = await openStore(`sqlite:${join(folder, 'rath.db')}`)
    for (const [name, store] of [
      ['memory', memory],
      ['SQLite, full durability', sqlite],
    ] as const) {
      await door(report, name, store)
      await steps(report, name, store)
    }
    await rounds(report, memory, folder)
    await replays(report, memory)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Does nothing so often, through the door or not. */
class Effects extends Workflow {
  readonly times: number
  readonly isDirect: boolean

  constructor(times: number, isDirect: boolean) {
    super()
    this.times = times
    this.isDirect = isDirect
  }

  async forward(session: Session, context: Parameters<Workflow['forward']>[1]): Promise<Session> {
    const work = async () => 1
    for (let i = 0; i < this.times; i++) {
      if (this.isDirect) await work()
      else await context.effect('nothing', { i }, work, { effect: 'pure' })
    }
    return session
  }
}

async function door(report: Report, name: string, store: Store): Promise<void> {
  const runtime = createRuntime({ store })
  const operations = 500
  const task = (isDirect: boolean): Task => ({
    name: isDirect ? 'called directly' : 'through the door',
    operations,
    run: () => runtime.run(new Effects(operations, isDirect), Session.fromUserMessage('go')),
  })
  report(await compareTime(`an effect, ${name}`, task(false), task(true), { rounds: 5, warmUps: 2 }))
}

async function steps(report: Report, name: string, store: Store): Promise<void> {
  const runtime = createRuntime({ store })
  const agent = new Agent('Be brief.', { model: zeroLatency(0), builtins: false })
  const once = () => runtime.run(agent, Session.fromUserMessage('go'))
  const operations = 200
  const inTurn: Task = {
    name: 'one after the other',
    operations,
    run: async () => {
      for (let i = 0; i < operations; i++) await once()
    },
  }
  const atOnce: Task = {
    name: '32 at a time',
    operations,
    run: () => {
      let left = operations
      const worker = async () => {
        while (left-- > 0) await once()
      }
      return Promise.all(Array.from({ length: 32 }, worker))
    },
  }
  for (const task of [inTurn, atOnce]) {
    const times: number[] = []
    for (let round = -2; round < 5; round++) {
      const { value } = await timeOnce(task)
      if (round >= 0) times.push(value)
    }
    const ours = { value: spread(times).median, unit: 'ns', name: task.name } as const
    report(judge({ what: `a run of one step, ${name}`, ours }, valueBelow(tenTimesPublished)))
  }
}

/** A round is one answer and one tool call, on the record with all it needs to be replayed: two effects, so two transactions. */
async function rounds(report: Report, memory: Store, folder: string): Promise<void> {
  const many = 20
  const times = 20
  const past = Session.fromUserMessage('go')
  const on = (store: Store, name: string): Task => {
    const runtime = createRuntime({ store })
    const agent = new Agent('Be brief.', {
      model: zeroLatency(many),
      tools: [adding()],
      builtins: false,
      maxRounds: many + 1,
    })
    const run = async () => {
      for (let i = 0; i < times; i++) await agent(past, { runtime })
    }
    return { name, operations: times * (many + 1), run }
  }
  for (const [durability, most] of [
    ['normal', 350_000],
    ['full', 450_000],
  ] as const) {
    await using store = await openStore(`sqlite:${join(folder, `${durability}.db`)}`, { durability })
    report(
      await compareTime(
        `tool round, SQLite ${durability}, processor time`,
        on(store, 'per round'),
        on(memory, 'memory:'),
        { clock: 'processor', rounds: 9, warmUps: 5, target: valueBelow(most) },
      ),
    )
  }
}

function adding() {
  return tool({
    name: 'add',
    description: 'Adds.',
    input: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
    effect: 'pure',
    run: ({ a, b }: { a: number; b: number }) => a + b,
  })
}

async function replays(report: Report, store: Store): Promise<void> {
  const runtime = createRuntime({ store })
  const rounds = 100
  const agent = new Agent('Be brief.', {
    model: zeroLatency(rounds),
    tools: [adding()],
    builtins: false,
    maxRounds: rounds + 1,
  })
  const recorded = runtime.run(agent, Session.fromUserMessage('go'))
  const { length } = await recorded
  report(
    await compareTime(
      'a chunk of a replay',
      {
        name: 'replayed',
        operations: length,
        run: async () => {
          const { ok } = await runtime.replay(recorded.runId, agent)
          if (!ok) throw new Error('the replay differs')
        },
      },
      { name: 'run', operations: length, run: () => runtime.run(agent, Session.fromUserMessage('go')) },
      { rounds: 5, warmUps: 2 },
    ),
  )
}
