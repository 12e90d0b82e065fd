// Counts what one warm round of an agent passes through: files and functions of src, their invocations, promises and commits.
// `npx node scripts/round-path.ts [memory:|sqlite] [--command] [--functions]`: `--command` gives the agent a tool that runs a command in a
// workspace instead of a pure one; `--functions` lists the functions, most invoked first.
import { createHook } from 'node:async_hooks'
import { mkdtempSync, rmSync } from 'node:fs'
import { Session as Inspector, type Profiler } from 'node:inspector'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { zeroLatency } from '../bench/support/zero-latency.ts'
import { openStore } from '../src/doors/store.ts'
import { Agent, createRuntime, Session, tool } from '../src/index.ts'

const warm = 40
const measured = 4
const folder = mkdtempSync(join(tmpdir(), 'round-path-'))
const url = process.argv.includes('memory:') ? 'memory:' : `sqlite:${join(folder, 'runs.db')}`

const inspector = new Inspector()
inspector.connect()
inspector.post('Profiler.enable')
inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

let promises = 0
createHook({
  init(_id, type) {
    if (type === 'PROMISE') promises++
  },
}).enable()

const source = pathToFileURL(join(import.meta.dirname, '../src/')).href
const rounds: Round[] = []

interface Round {
  readonly promises: number
  /** Invocations by file and function. */
  readonly calls: ReadonlyMap<string, number>
}

/** What has happened since the last look. */
function look(): Round {
  const calls = new Map<string, number>()
  inspector.post('Profiler.takePreciseCoverage', (error, params) => {
    if (error) throw error
    for (const script of params.result) for (const [name, count] of callsIn(script)) calls.set(name, count)
  })
  const round = { promises, calls }
  promises = 0
  return round
}

function* callsIn({ url, functions }: Profiler.ScriptCoverage): Generator<[string, number]> {
  if (!url.startsWith(source)) return
  const file = relative(fileURLToPath(source), fileURLToPath(url))
  for (const { functionName, ranges } of functions) {
    const [range] = ranges
    if (range && range.count > 0)
      yield [`${file} ${functionName || '(closure)'} ${range.startOffset}`, range.count]
  }
}

let asked = 0
const given = zeroLatency(warm + measured)
const model = {
  ...given,
  doGenerate(options: Parameters<typeof given.doGenerate>[0]) {
    const round = look()
    if (++asked > warm && rounds.length < measured) rounds.push(round)
    return given.doGenerate(options)
  },
}
const isCommand = process.argv.includes('--command')
const add = tool({
  name: 'add',
  description: 'Adds.',
  input: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  effect: isCommand ? 'workspace' : 'pure',
  run: ({ a, b }: { a: number; b: number }, context) =>
    isCommand
      ? context.sandbox
          .then(sandbox => sandbox.exec(`echo ${a} > sum`).result)
          .then(({ exitCode }) => exitCode)
      : a + b,
})

try {
  await using runtime = createRuntime({ store: await openStore(url) })
  const agent = new Agent('Be brief.', {
    model,
    tools: [add],
    builtins: false,
    maxRounds: warm + measured + 1,
  })
  const task = Session.fromUserMessage('go')
  await agent(isCommand ? task.to('local', join(folder, 'work')) : task, { runtime })
} finally {
  inspector.disconnect()
  rmSync(folder, { recursive: true, force: true })
}

const middle = (count: (round: Round) => number) =>
  rounds.map(count).sort((a, b) => a - b)[Math.floor(rounds.length / 2)] as number
const files = (round: Round) => new Set([...round.calls.keys()].map(name => name.split(' ')[0])).size
const sessions = ({ calls }: Round) => {
  const made = [...calls].find(([name]) => name.startsWith('session/session.ts Session '))
  return made?.[1] ?? 0
}
const invocations = (round: Round) => [...round.calls.values()].reduce((sum, count) => sum + count, 0)
console.log(
  `A warm round with a ${isCommand ? 'command in a workspace' : 'pure tool'} on ${url.split(':')[0]}: ${middle(files)} files, ${middle(({ calls }) => calls.size)} functions, ${middle(invocations)} invocations, ${middle(round => round.promises)} promises, ${middle(sessions)} Session objects (the middle of ${measured} rounds, the AI SDK's driver and model included).`,
)
if (process.argv.includes('--functions')) {
  const [round] = rounds
  for (const [name, count] of [...(round as Round).calls].sort(([, a], [, b]) => b - a))
    console.log(count, name)
}
