import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import type { Unfinished } from '../../src/run/approve/review.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { removeFolder } from '../../src/sandbox/host/remove-folder.ts'
import { collectLeftovers, findLeftovers } from '../../src/sandbox/workspace/fork/leftovers.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'
import { torture } from '../support/torture.ts'
import {
  type Ended,
  filesIn,
  type Kill,
  leftRunning,
  makePlace,
  type Place,
  seeded,
  work,
} from './journal/drive.ts'
import { Expedition } from './journal/expedition.ts'

const root = mkdtempSync(join(tmpdir(), 'openrath-kill-'))
afterAll(() => removeFolder(root))

// A run of the same seed plans the same kills.
const wanted = torture({ short: 12, full: 300 })
const seed = Number(process.env.OPENRATH_SEED ?? Math.floor(Math.random() * 2 ** 31))
const random = seeded(seed)
const nextKill = (): Kill => ({
  lines: 1 + Math.floor(random() * 12),
  delayMs: random() < 0.5 ? 0 : random() * 30,
})

const tokens = ({ counter }: Place) => readFileSync(counter, 'utf8').split('\n').filter(Boolean)
const errorIn = ({ end }: Ended) => JSON.parse(end?.slice('error '.length) as string)

/** What a run leaves behind, as far as it may not depend on when it was killed. */
async function traces(here: Place, { end }: Ended, store: Store) {
  const journal = (await store.runs.journal('run')).filter(({ kind }) => kind !== 'definition')
  const output = await store.sessions.get((await store.runs.get('run')).output as string)
  await using memory = await localMemory().open({ path: here.memory.path })
  return {
    end,
    chunks: output.chunks
      .filter(({ kind }) => kind !== 'note' && kind !== 'placement')
      .map(chunk => `${chunk.by} ${chunk.kind}: ${chunk.text} ${'tree' in chunk ? chunk.tree : ''}`),
    files: filesIn(here.project),
    counted: tokens(here).sort(),
    remembered: (await memory.list({ limit: 500 })).entries.map(({ text }) => text).sort(),
    effects: journal
      .map(({ kind, key, occurrence, outcome }) => `${kind} ${key} ${occurrence} ${outcome !== undefined}`)
      .sort(),
  }
}

/** A person finds out: the counter tells of payments, and a command that was cut off may be run again. */
async function review(here: Place, store: Store, calls: readonly Unfinished[]): Promise<void> {
  const runtime = createRuntime({ store, workspaces: false })
  for (const { key, request } of calls) {
    const { tool, args } = request as { tool: string; args: { token: string } }
    // Each token is paid for at several points; what is on record was another one.
    const known = (await store.runs.journal('run')).filter(
      ({ kind, outcome }) =>
        kind === 'tool' && JSON.stringify(outcome ?? null).includes(`counted ${args.token}`),
    ).length
    const paid = tokens(here).filter(one => one === args.token).length
    const happened = tool === 'pay' && paid > known
    await runtime.review('run', key, { happened, result: `counted ${args.token}` })
  }
}

it(`a run that is killed ${wanted} times, anywhere, ends as the undisturbed one does, and pays nothing twice`, async () => {
  const calm = makePlace(root, 'calm')
  const undisturbed = await work(calm, ['run', 'run'])
  expect(undisturbed.end).toMatch(/^end [0-9a-f]{64}$/)
  await using calmStore = await openStore(calm.store, { secrets: {} })
  const expected = await traces(calm, undisturbed, calmStore)
  expect(Object.keys(expected.files)).toEqual([
    'after.txt',
    'camp.txt',
    'fire.txt',
    'left.txt',
    'log.txt',
    'map.txt',
    'right/deep.txt',
  ])

  let kills = 0
  let reviews = 0
  let round = 0
  for (; kills < wanted; round++) {
    const here = makePlace(root, `round-${round}`)
    await using store = await openStore(here.store, { secrets: {} })
    const pids: number[] = []
    const ends: string[] = []
    const told = () => `seed ${seed}, round ${round}; processes ended after: ${ends.join('; ')}`
    let isKnown = false
    let last: Ended
    do {
      const kill = nextKill()
      last = await work(here, [isKnown ? 'resume' : 'run', 'run'], kill)
      pids.push(last.pid)
      ends.push(`${last.lines.at(-1)?.slice(0, 40)} and ${Math.round(kill.delayMs)} ms`)
      if (last.wasKilled) kills++
      else if (!last.end?.startsWith('end ')) {
        const error = errorIn(last)
        expect(error, told()).toMatchObject({ code: 'needs-review' })
        reviews += error.data.calls.length
        await review(here, store, error.data.calls)
      }
      isKnown ||= (await store.runs.list()).length > 0
    } while (!last.end?.startsWith('end '))
    expect(await traces(here, last, store), told()).toEqual(expected)
    expect(leftRunning(pids), told()).toEqual([])
    await using runtime = createRuntime({ store, workspaces: here.workspaces })
    const unused = () => expect.unreachable()
    const replayed = await runtime.replay('run', new Expedition(() => {}, unused, here.memory))
    expect(replayed.divergence?.message, told()).toBeUndefined()
    expect(replayed.ok, told()).toBe(true)
    // Branches that a killed process left have folders of the kernel's in them, which an ordinary user may neither read nor remove.
    const branches = join(here.workspaces, 'branches')
    expect((await collectLeftovers(branches)).kept, told()).toEqual([])
    expect(await findLeftovers(branches), told()).toEqual([])
    rmSync(here.folder, { recursive: true })
  }
  console.log(`${kills} kills and ${reviews} reviews in ${round} runs; seed ${seed}`)
})

it('an approval is decided by another process, and a third goes on with the run', async () => {
  const here = makePlace(root, 'till')
  const error = errorIn(await work(here, ['run', 'till']))
  expect(error.code).toBe('run-waiting')
  expect(tokens(here)).toEqual([])
  const [{ approval }] = error.data.approvals
  expect((await work(here, ['decide', 'till', approval])).end).toBe('end decided')
  expect((await work(here, ['resume', 'till'])).end).toMatch(/^end [0-9a-f]{64}$/)
  expect(tokens(here)).toEqual(['bread'])
})

it('a second process is told that a run is driven by the first', async () => {
  const here = makePlace(root, 'two')
  const program = join(import.meta.dirname, 'journal', 'worker.ts')
  const first = spawn(process.execPath, [program, here.folder, 'run', 'run'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = new Promise(resolve => first.on('close', resolve))
  // It works while it holds the run: stopped in its first effect, it can neither end nor renew.
  const lines = createInterface({ input: first.stdout })
  await new Promise<void>(resolve => lines.on('line', line => line.startsWith('model') && resolve()))
  try {
    await stopBetweenWrites(first, here)
    const error = errorIn(await work(here, ['resume', 'run']))
    expect(error).toMatchObject({ code: 'run-owned', data: { run: 'run' } })
    expect(error.message).toContain(`/${first.pid}-`)
  } finally {
    first.kill('SIGKILL')
    await closed
  }
})

/** A process that is stopped in the middle of a write keeps everybody else from writing. */
async function stopBetweenWrites(child: ChildProcess, { store }: Place): Promise<void> {
  using database = new DatabaseSync(store.slice('sqlite:'.length), { timeout: 0 })
  for (;;) {
    child.kill('SIGSTOP')
    while (!/^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8'))) await setImmediate()
    try {
      database.exec('BEGIN IMMEDIATE; ROLLBACK')
      return
    } catch {
      child.kill('SIGCONT')
      await setImmediate()
    }
  }
}
