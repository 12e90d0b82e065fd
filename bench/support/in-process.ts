// Started by `loop` once for each side, in a process of its own: `node --expose-gc bench/support/in-process.ts openrath|ai`.
import { zeroLatency } from './zero-latency.ts'

/** What a new process measured of itself. */
export interface InProcess {
  /** Nanoseconds of processor time a round, over the first 100 rounds; without importing the package. */
  readonly first: number
  /** Bytes that the process grew by while 1,000 agents of 3 rounds were under way. */
  readonly peak: number
  /** Bytes of live objects that were added when all of them had answered once. */
  readonly live: number
}

const parameters = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
} as const
const sum = ({ a, b }: { a: number; b: number }) => a + b

/** Answers a question after so many rounds, with a model that answers when `gate` lets it. */
type Loop = (rounds: number, gate?: () => Promise<void>) => Promise<unknown>

const loops: Record<string, () => Promise<Loop>> = {
  async openrath() {
    const { Agent, configure, Session, tool } = await import('openrath')
    configure({ store: 'memory:' })
    const add = tool({ name: 'add', description: 'Adds.', input: parameters, effect: 'pure', run: sum })
    return (rounds, gate) => {
      const model = gated(rounds - 1, gate)
      const agent = new Agent('Be brief.', { model, tools: [add], builtins: false, maxRounds: rounds })
      return agent(Session.fromUserMessage('go'))
    }
  },
  async ai() {
    const { generateText, isStepCount, jsonSchema, tool } = await import('ai')
    const inputSchema = jsonSchema<{ a: number; b: number }>(parameters)
    const add = tool({ description: 'Adds.', inputSchema, execute: async given => sum(given) })
    return (rounds, gate) =>
      generateText({
        model: gated(rounds - 1, gate),
        instructions: 'Be brief.',
        messages: [{ role: 'user', content: 'go' }],
        tools: { add },
        stopWhen: isStepCount(rounds),
      })
  },
}

function gated(rounds: number, gate: (() => Promise<void>) | undefined): ReturnType<typeof zeroLatency> {
  const model = zeroLatency(rounds)
  if (!gate) return model
  return {
    ...model,
    async doGenerate(options) {
      await gate()
      return model.doGenerate(options)
    },
  }
}

const loop = await (loops[process.argv[2] as string] as () => Promise<Loop>)()

const started = process.cpuUsage()
for (let i = 0; i < 5; i++) await loop(20)
const { user, system } = process.cpuUsage(started)
const first = ((user + system) * 1e3) / 100

// Both run until their code is compiled, so that what is compiled later is not taken for the agents' memory.
for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 50 }, () => loop(3)))
const agents = 1_000
globalThis.gc?.()
const before = process.memoryUsage.rss()
let most = before
const look = async () => {
  most = Math.max(most, process.memoryUsage.rss())
}
await Promise.all(Array.from({ length: agents }, () => loop(3, look)))
await look()

globalThis.gc?.()
const idle = process.memoryUsage().heapUsed
let live = 0
let waiting = 0
let open = () => {}
const all = new Promise<void>(resolve => {
  open = resolve
})
/** The second answer of each waits until all others have had their first. */
const gateOf = () => {
  let asked = 0
  return async () => {
    if (++asked !== 2) return
    if (++waiting === agents) {
      globalThis.gc?.()
      live = process.memoryUsage().heapUsed - idle
      open()
    }
    await all
  }
}
await Promise.all(Array.from({ length: agents }, () => loop(3, gateOf())))
console.log(JSON.stringify({ first, peak: most - before, live } satisfies InProcess))
