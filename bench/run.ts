// Runs the benchmarks named as arguments, or all of them: `npm run bench -- session --json`.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import type { Bench, Line } from './harness.ts'
import { printTable, printVerdict } from './table.ts'

const notBenches = new Set(['appends.ts', 'chunks.ts', 'harness.ts', 'run.ts', 'table.ts'])
const known = readdirSync(import.meta.dirname)
  .filter(file => file.endsWith('.ts') && !notBenches.has(file))
  .map(file => file.slice(0, -'.ts'.length))
  .sort()

interface Result {
  readonly bench: string
  readonly seconds: number
  readonly lines: readonly Line[]
  /** Set when it crashed; the lines are those measured before. */
  readonly error?: string
}

const names = process.argv.slice(2).filter(argument => argument !== '--json')
const asJson = process.argv.includes('--json')
const unknown = names.filter(name => !known.includes(name))
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(', ')}; there are: ${known.join(', ')}.`)
  process.exit(1)
}

const machine = {
  cores: availableParallelism(),
  cpu: cpus()[0]?.model ?? 'unknown',
  node: process.version,
  architecture: process.arch,
  /** Processes that wanted a core in the last minute: above the number of cores, times are not to be trusted. */
  load: loadavg()[0] ?? 0,
  date: new Date().toISOString(),
}
if (!asJson) {
  console.log(
    `${machine.cores} cores (${machine.cpu}, ${machine.architecture}), Node ${machine.node}, load ${machine.load.toFixed(1)}, ${machine.date}`,
  )
  console.log(
    'The machine may be noisy: read the ratios, which are taken within one run, before the times.\n',
  )
}

const results: Result[] = []
const chosen = names.length > 0 ? names : known
for (const name of chosen) {
  // Each in a process of its own, so that no benchmark meets the heap or the compiled code of another.
  const result = chosen.length === 1 ? await runHere(name) : runApart(name)
  results.push(result)
  if (asJson) continue
  console.log(`${name} (${result.seconds.toFixed(0)} s)\n`)
  console.log(`${printTable(result.lines)}\n\n${printVerdict(result.lines)}`)
  if (result.error) console.log(`CRASHED: ${result.error}`)
  console.log()
}
if (asJson) console.log(JSON.stringify({ machine, results }, null, 2))
if (results.some(result => result.error)) process.exitCode = 1

async function runHere(name: string): Promise<Result> {
  const lines: Line[] = []
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  try {
    const { bench } = (await import(join(import.meta.dirname, `${name}.ts`))) as { bench: Bench }
    await bench(line => {
      lines.push(line)
      console.error(
        `  ${seconds().toFixed(0).padStart(3)} s  ${line.what}${line.met === false ? ': MISSED' : ''}`,
      )
    })
    return { bench: name, seconds: seconds(), lines }
  } catch (error) {
    console.error(error)
    return { bench: name, seconds: seconds(), lines, error: String(error) }
  }
}

function runApart(name: string): Result {
  const { stdout } = spawnSync(process.execPath, ['--expose-gc', import.meta.filename, name, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  try {
    return (JSON.parse(stdout) as { results: [Result] }).results[0]
  } catch {
    return { bench: name, seconds: 0, lines: [], error: 'its process ended without a result' }
  }
}
