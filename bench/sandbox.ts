import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Agent } from '../src/flow/agent.ts'
import type { Places } from '../src/run/place/places.ts'
import { createRuntime, type Runtime } from '../src/run/runtime.ts'
import { dockerBackend } from '../src/sandbox/drivers/docker/driver.ts'
import { isolatedBackend } from '../src/sandbox/drivers/isolated/driver.ts'
import { localBackend } from '../src/sandbox/drivers/local/driver.ts'
import type { Sandbox, SandboxBackend, SandboxSpec } from '../src/sandbox/spec.ts'
import type { ChunkInput } from '../src/session/chunk.ts'
import { Session } from '../src/session/session.ts'
import { scripted } from '../src/testing/scripted.ts'
import { type Engine, startPodman } from '../test/sandbox/stand-in/podman.ts'
import {
  type Bench,
  compareFigures,
  compareTime,
  judge,
  ratioAtMost,
  type Task,
  valueBelow,
} from './harness.ts'

const run = promisify(execFile)
const size = 10_000
const name = `${size.toLocaleString('en')} files`
const few = { rounds: 5, warmUps: 1 }
const memory = '/dev/shm'
type Report = Parameters<Bench>[0]

/** What a command and a call cost on each backend, and what branches of a project of 10,000 files of 1 KB cost in a runtime. */
export const bench: Bench = async report => {
  await commands(report)
  const base = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  try {
    const project = join(base, 'project')
    makeFiles(project)
    const workspaces = join(base, 'kept')
    await using runtime = createRuntime({ store: 'memory:', workspaces })
    const start = await call(runtime, Session.fromUserMessage('go').to('local', project), edit('d0/f0', 0))
    await writes(runtime, start, project, report, '')
    await writesInMemory(report)
    await looks(runtime, start, project, report)
    await calls(runtime, start, project, report)
    await branches(runtime, start, workspaces, report)
    await merges(runtime, start, base, report)
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

/** A backend, and a spec for it. */
interface Place {
  readonly name: string
  readonly backend: SandboxBackend
  readonly spec?: SandboxSpec
}

async function commands(report: Report): Promise<void> {
  const engine = await startPodman()
  if (typeof engine === 'string') console.error(`  docker is not measured: ${engine}`)
  const places: Place[] = [
    { name: 'local', backend: localBackend() },
    { name: 'isolated', backend: isolatedBackend() },
    {
      name: 'isolated, hosts allowed',
      backend: isolatedBackend(),
      spec: { network: { allow: ['example.com'] } },
    },
  ]
  if (typeof engine !== 'string') places.push({ name: 'docker, by Podman', backend: dockerBackend(engine) })
  try {
    for (const place of places) {
      const { available, reason } = (await place.backend.probe?.()) ?? { available: true }
      if (available) await command(place, report)
      else console.error(`  ${place.name} is not measured: ${reason}`)
    }
  } finally {
    await (engine as Partial<Engine>)[Symbol.asyncDispose]?.()
  }
}

/** The start of a command that does nothing, until it and all it started are known to be gone. */
async function command({ name, backend, spec }: Place, report: Report): Promise<void> {
  await using sandbox = await backend.open(spec)
  const plain: Task = {
    name: 'spawn',
    operations: 1,
    run: () => once(spawn('true', [], { stdio: ['ignore', 'pipe', 'pipe'] }), 'close'),
  }
  const ours: Task = { name, operations: 1, run: () => sandbox.exec(['true']).result }
  report(await compareTime('start and end of a command', ours, plain, { rounds: 21, warmUps: 3 }))
  if (spec !== undefined) return
  if (name === 'isolated') await besideBubblewrap(backend, ours, report)

  const opening: Task<Sandbox[]> = {
    name,
    operations: 1,
    prepare: () => [],
    run: async made => void made.push(await backend.open(undefined)),
    finish: made => Promise.all(made.map(one => one.close())),
  }
  report(await compareTime('opening a sandbox', opening, plain, few))

  await sandbox.files.write('file', textOf(0, 0))
  const here = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  writeFileSync(join(here, 'file'), textOf(0, 0))
  const reading: Task = { name, operations: 1, run: () => sandbox.files.read('file') }
  const direct: Task = { name: 'readFile', operations: 1, run: () => readFile(join(here, 'file')) }
  report(await compareTime('a file read', reading, direct, few))
  rmSync(here, { recursive: true })
}

/** The first command of a sandbox and each further one, beside bubblewrap alone with as many namespaces and hardly a mount. */
async function besideBubblewrap(backend: SandboxBackend, further: Task, report: Report): Promise<void> {
  const links = ['bin', 'lib', 'lib64'].filter(at => existsSync(`/usr/${at}`))
  const walls = [
    ...['--unshare-all', '--ro-bind', '/usr', '/usr', '--proc', '/proc', '--dev', '/dev'],
    ...links.flatMap(at => ['--symlink', `usr/${at}`, `/${at}`]),
  ]
  const bare: Task = {
    name: 'bwrap',
    operations: 1,
    run: () => once(spawn('bwrap', [...walls, 'true'], { stdio: ['ignore', 'pipe', 'pipe'] }), 'close'),
  }
  const first: Task<Sandbox> = {
    name: 'isolated',
    operations: 1,
    prepare: () => backend.open(undefined),
    run: sandbox => sandbox.exec(['true']).result,
    finish: sandbox => sandbox.close(),
  }
  const rounds = { rounds: 21, warmUps: 3 }
  report(
    await compareTime('the first command of a sandbox', first, bare, { ...rounds, target: valueBelow(20e6) }),
  )
  report(await compareTime('a further command', further, bare, { ...rounds, target: valueBelow(12e6) }))
}

/** What a file tool costs. */
async function writes(
  runtime: Runtime,
  session: Session,
  project: string,
  report: Report,
  disk: string,
): Promise<void> {
  let edits = 1
  const writing: Task = {
    name: 'a call that writes',
    operations: 20,
    run: async () => {
      for (let n = 0; n < 20; n++) await call(runtime, session, edit('d7/f7', edits++))
    },
  }
  const bare: Task = {
    name: 'write, rename',
    operations: 20,
    run: () => {
      for (let n = 0; n < 20; n++) {
        writeFileSync(join(project, 'd7/.new'), textOf(7, edits++))
        renameSync(join(project, 'd7/.new'), join(project, 'd7/f7'))
      }
    },
  }
  report(
    await compareTime(`a file written and kept, ${name}${disk}`, writing, bare, {
      rounds: 9,
      warmUps: 2,
      target: valueBelow(2e6),
    }),
  )
}

/** The same where the disk is memory: what is left is ours, and not the disk's. */
async function writesInMemory(report: Report): Promise<void> {
  if (!existsSync(memory)) return console.error(`  writing to memory is not measured: there is no ${memory}`)
  const base = mkdtempSync(join(memory, 'openrath-bench-'))
  try {
    const project = join(base, 'project')
    makeFiles(project)
    await using runtime = createRuntime({ store: 'memory:', workspaces: join(base, 'kept') })
    const start = await call(runtime, Session.fromUserMessage('go').to('local', project), edit('d0/f0', 0))
    await writes(runtime, start, project, report, ', in memory')
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

async function looks(runtime: Runtime, session: Session, project: string, report: Report): Promise<void> {
  const { files } = await runtime.places.open({ session, run: runName })
  const looking: Task = { name: 'nothing changed', operations: 1, run: () => files?.look() }
  const asking: Task = {
    name: 'readdir, lstat',
    operations: 1,
    run: () => {
      for (const folder of readdirSync(project)) {
        const inner = `${project}/${folder}`
        for (const file of readdirSync(inner)) lstatSync(`${inner}/${file}`)
      }
    },
  }
  report(await compareTime(`a look at ${name}`, looking, asking, { target: ratioAtMost(1.5) }))
}

async function calls(runtime: Runtime, session: Session, project: string, report: Report): Promise<void> {
  const cmd = 'echo more >> d9/f9'
  const asking = () =>
    new Agent('Work.', {
      model: scripted([{ toolCalls: [{ name: 'run_shell_command', args: { cmd } }] }, 'done']),
    })
  const agent: Task<Agent> = {
    name: 'an agent, one call',
    operations: 1,
    prepare: asking,
    run: worker => runtime.run(worker, session),
  }
  const shell: Task = { name: 'sh -c', operations: 1, run: () => run('sh', ['-c', cmd], { cwd: project }) }
  report(
    await compareTime(`a command that changed 1 of ${name}`, agent, shell, {
      rounds: 9,
      warmUps: 3,
      target: valueBelow(120e6),
    }),
  )

  const fork = session.fork()
  await call(runtime, fork, edit('d0/f1', 0))
  const inFork: Task = {
    name: 'a call in a fork',
    operations: 1,
    run: () => call(runtime, fork, sandbox => sandbox.exec(cmd).result),
  }
  report(await compareTime(`a command that changed 1 of ${name}`, inFork, shell, few))
  await runtime.places.leave(runName)
}

async function branches(runtime: Runtime, session: Session, kept: string, report: Report): Promise<void> {
  const forking = (count: number): Task => ({
    name: count === 1 ? 'one alone' : `${count} at once, each`,
    operations: count,
    run: () => Promise.all(session.forks(count).map((fork, n) => call(runtime, fork, edit('d1/f1', n)))),
    finish: () => runtime.places.leave(runName),
  })
  report(
    await compareTime(`a fork that writes its first file, ${name}`, forking(50), forking(1), {
      rounds: 3,
      warmUps: 1,
    }),
  )

  const before = await bytesIn(kept)
  await forking(50).run(undefined)
  const value = Math.max(0, (await bytesIn(kept)) - before) / 50
  await runtime.places.leave(runName)
  const copied = await bytesIn(session.placement?.spec as string)
  const line = compareFigures(
    `disk of a fork with one file changed, ${name}`,
    { value, unit: 'bytes', name: 'each of 50' },
    { value: copied, unit: 'bytes', name: 'a copy' },
  )
  report(judge(line, ratioAtMost(0.01)))
}

/** Both branches changed one file each and different lines of a third; the result is in the folder that was handed over. */
async function merges(runtime: Runtime, session: Session, base: string, report: Report): Promise<void> {
  let edits = 0
  const ours: Task<readonly [Session, Session]> = {
    name: 'merge, files in the folder',
    operations: 1,
    prepare: async () => {
      edits++
      const root = await call(runtime, session, edit('d2/f2', edits))
      const [left, right] = root.forks(2) as [Session, Session]
      const change =
        (own: string, text: string) =>
        async ({ files }: Sandbox) => {
          await files.write(own, textOf(0, edits))
          await files.write('d2/f2', text)
        }
      const text = textOf(0, edits)
      return Promise.all([
        call(runtime, left, change('d3/f3', `left\n${text}`)),
        call(runtime, right, change('d4/f4', `${text}right\n`)),
      ])
    },
    run: ([left, right]) => left.merge(right),
    finish: () => runtime.places.leave(runName),
  }
  report(
    await compareTime(`merge of two branches of ${name}`, ours, gitMerge(join(base, 'git')), {
      rounds: 3,
      warmUps: 1,
    }),
  )
}

function gitMerge(folder: string): Task {
  makeFiles(folder)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@example.org', ...args], {
      cwd: folder,
    })
  const commit = (branch: string, path: string, text: string) => {
    git('checkout', '-q', '-b', branch, 'base')
    writeFileSync(join(folder, 'd2/f2'), text)
    writeFileSync(join(folder, path), branch)
    git('commit', '-q', '-a', '-m', branch)
  }
  git('init', '-q', '-b', 'base')
  git('add', '-A')
  git('commit', '-q', '-m', 'base')
  commit('right', 'd4/f4', `${textOf(202, 0)}right\n`)
  commit('left', 'd3/f3', `left\n${textOf(202, 0)}`)
  return {
    name: 'git merge',
    operations: 1,
    prepare: () => git('checkout', '-q', '-B', 'merged', 'left'),
    run: () => git('merge', '-q', '--no-edit', 'right'),
  }
}

const runName = 'bench'

/** One tool call as a run makes it: the sandbox opened and held, the change, what it changed on the record. */
async function call(
  { places }: { readonly places: Places },
  session: Session,
  work: (sandbox: Sandbox) => Promise<unknown>,
): Promise<Session> {
  const capture = places.capture({ session, run: runName })
  await capture.run(async () => work(await capture.sandbox()))
  const { drift: _, ...evidence } = await capture.end()
  const outcome = { kind: 'value', value: null }
  return session.append({
    kind: 'tool-result',
    callId: 'c',
    tool: 'work',
    outcome,
    ...evidence,
  } as ChunkInput)
}

const edit = (path: string, n: number) => (sandbox: Sandbox) => sandbox.files.write(path, textOf(0, n))

/** What lies there, as the disk counts it. */
async function bytesIn(folder: string): Promise<number> {
  return Number.parseInt((await run('du', ['-sk', folder])).stdout, 10) * 1024
}

/** A hundred in a folder. */
function makeFiles(folder: string): void {
  for (let n = 0; n < size; n++) {
    const inner = join(folder, `d${Math.floor(n / 100)}`)
    if (n % 100 === 0) mkdirSync(inner, { recursive: true })
    writeFileSync(join(inner, `f${n % 100}`), textOf(n, 0))
  }
}

function textOf(n: number, edits: number): string {
  return Array.from({ length: 40 }, (_, line) => `file ${n}, edit ${edits}, line ${line}\n`).join('')
}
