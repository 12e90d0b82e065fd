import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { afterAll, expect, it } from 'vitest'
import { createRuntime } from '../../src/run/runtime.ts'
import { openStore } from '../../src/store/open.ts'
import { Expedition } from './journal/expedition.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-kill-'))
afterAll(() => rmSync(folder, { recursive: true }))

function place(name: string) {
  const counter = join(folder, `${name}.txt`)
  writeFileSync(counter, '')
  return { store: `sqlite:${join(folder, `${name}.db`)}`, counter }
}
type Place = ReturnType<typeof place>

interface Ended {
  /** The last line, if it came to one: `end STATE`, or `error JSON`. */
  readonly end: string | undefined
  readonly lines: readonly string[]
}

/** A process that works on a run, killed after so many lines; every line is a point in or between effects. */
async function work({ store, counter }: Place, command: string[], killAfter = Infinity): Promise<Ended> {
  const program = join(import.meta.dirname, 'journal', 'worker.ts')
  const child: ChildProcessByStdio<null, Readable, null> = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', program, store, counter, ...command],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const closed = new Promise(resolve => child.on('close', resolve))
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length >= killAfter) child.kill('SIGKILL')
  }
  await closed
  return { lines, end: lines.find(line => /^(end|error) /.test(line)) }
}

const tokens = ({ counter }: Place) => readFileSync(counter, 'utf8').split('\n').filter(Boolean)
const counts = (all: readonly string[]) =>
  Object.fromEntries(all.map(t => [t, all.filter(o => o === t).length]))

it('a run killed anywhere, again and again, ends as the undisturbed one does, and pays nothing twice', async () => {
  const calm = place('calm')
  const undisturbed = await work(calm, ['run', 'run'])
  expect(undisturbed.end).toMatch(/^end [0-9a-f]{64}$/)
  const total = undisturbed.lines.length

  let kills = 0
  let reviews = 0
  for (let round = 0; kills < 25; round++) {
    const here = place(`round-${round}`)
    const store = await openStore(here.store, { secrets: {} })
    const runtime = createRuntime({ store })
    let last = await work(here, ['run', 'run'], 1 + Math.floor(Math.random() * total))
    while (!last.end?.startsWith('end ')) {
      if (last.end === undefined) kills++
      else {
        const error = JSON.parse(last.end.slice('error '.length))
        expect(error).toMatchObject({ code: 'needs-review' })
        for (const { id, key, request } of error.data.calls) {
          reviews++
          const { token } = request.args
          // Each token is paid for at two points at most; what is on record already was another one.
          const paid = tokens(here).filter(one => one === token).length
          const known = (await store.runs.journal('run')).filter(
            ({ kind, outcome }) =>
              kind === 'tool' && JSON.stringify(outcome ?? null).includes(`counted ${token}`),
          ).length
          await runtime.review('run', key ?? id, { happened: paid > known, result: `counted ${token}` })
        }
      }
      const isKnown = await store.runs.get('run').then(
        () => true,
        () => false,
      )
      last = await work(here, [isKnown ? 'resume' : 'run', 'run'], 1 + Math.floor(Math.random() * total))
    }
    expect(last.end).toBe(undisturbed.end)
    expect(counts(tokens(here))).toEqual(counts(tokens(calm)))
    const journal = (await store.runs.journal('run')).filter(({ kind }) => kind !== 'definition')
    expect(new Set(journal.map(({ key, occurrence }) => `${key} ${occurrence}`)).size).toBe(journal.length)
    expect(
      await runtime.replay(
        'run',
        new Expedition(
          () => {},
          () => expect.unreachable(),
        ),
      ),
    ).toMatchObject({
      ok: true,
    })
    await store.close()
  }
  expect(kills).toBeGreaterThanOrEqual(25)
  expect(reviews).toBeGreaterThanOrEqual(0)
}, 600_000)

it('an approval is decided by another process, and a third goes on with the run', async () => {
  const here = place('till')
  const first = await work(here, ['run', 'till'])
  const error = JSON.parse(first.end?.slice('error '.length) as string)
  expect(error.code).toBe('run-waiting')
  expect(tokens(here)).toEqual([])
  const [{ approval }] = error.data.approvals
  expect((await work(here, ['decide', 'till', approval])).end).toBe('end decided')
  expect((await work(here, ['resume', 'till'])).end).toMatch(/^end [0-9a-f]{64}$/)
  expect(tokens(here)).toEqual(['bread'])
}, 60_000)

it('a second process is told that a run is driven by the first', async () => {
  const here = place('two')
  const program = join(import.meta.dirname, 'journal', 'worker.ts')
  const first = spawn(process.execPath, [program, here.store, here.counter, 'run', 'run'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = new Promise(resolve => first.on('close', resolve))
  // It works while it holds the run: stopped in its first effect, it can neither end nor renew.
  await new Promise<void>(resolve => createInterface({ input: first.stdout }).once('line', () => resolve()))
  first.kill('SIGSTOP')
  const second = await work(here, ['resume', 'run'])
  const error = JSON.parse(second.end?.slice('error '.length) as string)
  expect(error).toMatchObject({ code: 'run-owned', data: { run: 'run' } })
  expect(error.message).toContain(`/${first.pid}/`)
  first.kill('SIGKILL')
  await closed
}, 60_000)
