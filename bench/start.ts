// From the start of a process to its first answer, in processes of their own: what a command, a test or a function in the cloud waits for.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bench, judge, type Line, ratioAtMost, spread, type Target } from './harness.ts'

/** Answers at once, in the shape that the AI SDK asks of a provider. */
const model = `
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
const finishReason = { unified: 'stop', raw: 'stop' }
const parts = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Hello' }, { type: 'text-end', id: '1' },
  { type: 'finish', finishReason, usage },
]
const model = {
  specificationVersion: 'v4', provider: 'none', modelId: 'none', supportedUrls: {},
  doGenerate: async () => ({ content: [{ type: 'text', text: 'Hello' }], finishReason, usage, warnings: [] }),
  doStream: async () => ({ stream: ReadableStream.from(parts) }),
}`

const ours = (store: string) => `
import { Agent, configure, Session } from 'openrath'
${store}
const { text } = await new Agent('You are kind.', { model })(Session.fromUserMessage('Hello'))`

const programs = {
  'ai generateText': `import { generateText } from 'ai'
const { text } = await generateText({ model, system: 'You are kind.', prompt: 'Hello' })`,
  'ai streamText': `import { streamText } from 'ai'
const text = await streamText({ model, system: 'You are kind.', prompt: 'Hello' }).text`,
  'kept in memory': ours("configure({ store: 'memory:' })"),
  'kept in a new SQLite file': ours(''),
  'import openrath': `import 'openrath'
const text = 'Hello'`,
  'import ai': `import 'ai'
const text = 'Hello'`,
}

type Program = keyof typeof programs

export const bench: Bench = async report => {
  const target = ratioAtMost(1)
  report(compare('cold start to first answer', 'kept in memory', 'ai generateText', target))
  report(compare('cold start to first answer', 'kept in a new SQLite file', 'ai generateText', target))
  report(compare('cold start to first answer', 'kept in memory', 'ai streamText'))
  report(compare('import alone', 'import openrath', 'import ai', target))
}

/** Processor time, turn by turn. The first of each fills the caches of the file system and does not count. */
function compare(what: string, mine: Program, theirs: Program, target?: Target): Line {
  const [a, b]: [number[], number[]] = [[], []]
  for (let round = -1; round < 11; round++) {
    const [first, second] = round % 2 ? [mine, theirs] : [theirs, mine]
    const times = { [first]: start(first), [second]: start(second) }
    if (round < 0) continue
    a.push(times[mine] as number)
    b.push(times[theirs] as number)
  }
  return judge(
    {
      what,
      ours: { value: spread(a).median, unit: 'ns', name: mine },
      baseline: { value: spread(b).median, unit: 'ns', name: theirs },
      ratio: spread(a.map((value, i) => value / (b[i] as number))),
    },
    target,
  )
}

/** Nanoseconds of processor time that one process took, by what it says at its end. */
function start(name: Program): number {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-start-'))
  const program = `${programs[name]}
if (text !== 'Hello') throw new Error(text)
const { userCPUTime, systemCPUTime } = process.resourceUsage()
console.log(userCPUTime + systemCPUTime)
process.exit()`
  // Static imports may stand anywhere, so the model can come first.
  const args = [
    '--input-type=module',
    '--eval',
    `process.chdir(${JSON.stringify(folder)})\n${model}\n${program}`,
  ]
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: import.meta.dirname,
    env: { ...env, OPENRATH_HOME: folder },
    encoding: 'utf8',
  })
  rmSync(folder, { recursive: true, force: true })
  const microseconds = Number(stdout)
  if (!(microseconds > 0)) throw new Error(`${name} did not answer: ${stderr}`)
  return microseconds * 1000
}
