import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Agent, createRuntime, Session } from 'openrath'
import { dossierOf, writeBundle } from 'openrath/evidence'
import { openStore, type Store } from 'openrath/store'
import { appends, postgresBed, sqliteBed } from './appends.ts'
import { build, said, short, turn } from './chunks.ts'
import {
  type Bench,
  compareFigures,
  compareTime,
  type Figure,
  judge,
  type Line,
  ratioAtMost,
  spread,
  type Task,
  timeOnce,
  valueBelow,
} from './harness.ts'
import { zeroLatency } from './support/zero-latency.ts'

type Report = (line: Line) => void

/** The small heap first, as in `session`. */
export const bench: Bench = async report => {
  const folder = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  try {
    await appends(report, sqliteBed(folder))
    await onPostgres(report)
    await conversation(report, folder)
    await forks(report, folder)
    await listing(report, folder)
    await prefixes(report, folder)
    await longSession(report, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Left out, with a word, where no server starts. */
async function onPostgres(report: Report): Promise<void> {
  const { startPostgres } = await import('../test/support/postgres.ts')
  let server: Awaited<ReturnType<typeof startPostgres>>
  try {
    server = await startPostgres()
  } catch {
    console.error('  PostgreSQL does not start here; its lines are left out.')
    return
  }
  try {
    await appends(report, postgresBed(server.createDatabase))
  } finally {
    await server.stop()
  }
}

async function conversation(report: Report, folder: string): Promise<void> {
  const sizes = [500, 5_000]
  const measured = []
  for (const turns of sizes) measured.push(await keptBytes(turns, join(folder, `turns-${turns}.db`)))
  const [small, large] = measured as [Bytes, Bytes]
  for (const [name, key] of [['', 'kept'] as const, [', with its word index', 'indexed'] as const]) {
    report(
      compareFigures(
        `bytes of a conversation of 5k turns${name}`,
        { value: large[key], unit: 'bytes', name: 'database' },
        { value: large.json, unit: 'bytes', name: 'its JSONL' },
        key === 'kept' ? ratioAtMost(1.5) : undefined,
      ),
    )
  }
  const exponent = Math.log(large.kept / small.kept) / Math.log(10)
  report(
    judge(
      {
        what: 'bytes of a conversation, growth',
        ours: { value: exponent, unit: 'exponent', name: '500 to 5k turns' },
      },
      valueBelow(1.1),
    ),
  )
}

interface Bytes {
  readonly json: number
  readonly kept: number
  readonly indexed: number
}

async function keptBytes(turns: number, path: string): Promise<Bytes> {
  await using store = await open(path)
  const { id } = await store.sessions.put(Session.create('empty'))
  for (let i = 0; i < turns * 4; i += 4) {
    await store.sessions.append(id, [turn(i), turn(i + 1), turn(i + 2), turn(i + 3)])
  }
  const json = Buffer.byteLength((await store.sessions.get(id)).toJSONL())
  const kept = bytesOf(path)
  await store.sessions.search('answer')
  return { json, kept, indexed: bytesOf(path) }
}

async function forks(report: Report, folder: string): Promise<void> {
  const count = 1_000
  const path = join(folder, 'forks.db')
  await using store = await open(path)
  const small = await store.sessions.put(build(10, turn))
  const large = await store.sessions.put(build(1_000, turn))

  const bytesPerFork = async (make: (i: number) => Session): Promise<Figure> => {
    const before = bytesOf(path)
    for (let i = 0; i < count; i++) await store.sessions.put(make(i))
    return { value: (bytesOf(path) - before) / count, unit: 'bytes', name: `each of ${short(count)}` }
  }
  const ours = await bytesPerFork(() => large.fork())
  report(judge({ what: 'bytes of a kept fork of 1k chunks', ours }, valueBelow(1024)))
  report({
    what: 'bytes of a kept fork of 1k chunks with one append',
    ours: await bytesPerFork(i => large.fork().append(said(i))),
  })

  const keeping = (session: Session, name: string): Task<Session[]> => ({
    name,
    operations: count,
    prepare: () => session.forks(count),
    async run(made) {
      for (const fork of made) await store.sessions.put(fork)
    },
  })
  report(
    await compareTime('put of a fork of 1k chunks', keeping(large, 'per fork'), keeping(small, '10 chunks'), {
      target: ratioAtMost(3),
      rounds: 5,
      warmUps: 1,
    }),
  )
}

async function listing(report: Report, folder: string): Promise<void> {
  const opened = async (count: number) => {
    const store = await open(join(folder, `list-${count}.db`))
    for (let done = 0; done < count; done += 1_000) {
      const made = Array.from({ length: 1_000 }, (_, i) =>
        Session.fromUserMessage(`message number ${done + i}`),
      )
      await Promise.all(made.map(session => store.sessions.put(session)))
    }
    return store
  }
  await using small = await opened(1_000)
  await using large = await opened(100_000)
  const first = (store: Store, name: string): Task => ({
    name,
    operations: 20,
    async run() {
      for (let i = 0; i < 20; i++) await store.sessions.list({ limit: 50 })
    },
  })
  report(
    await compareTime('first 50 of 100k sessions', first(large, 'per page'), first(small, 'of 1k sessions'), {
      target: ratioAtMost(3),
    }),
  )
  for (const [what, view] of views) {
    const [ours, baseline] = await Promise.all([
      viewOf(large, 'per view', view),
      viewOf(small, 'of 1k sessions', view),
    ])
    const options = { target: ratioAtMost(1.5), clock: 'processor' } as const
    report(await compareTime(`${what} of a small run among 100k sessions`, ours, baseline, options))
  }
}

const views = [
  ['graph', (store, run) => createRuntime({ store }).graph(run)],
  ['dossier', (store, run) => dossierOf(store, run)],
  ['bundle', (store, run) => linesOf(writeBundle(store, { runs: [run] }))],
] as const satisfies readonly (readonly [string, (store: Store, run: string) => Promise<unknown>])[]

async function linesOf(lines: AsyncIterable<string>): Promise<number> {
  let count = 0
  for await (const _ of lines) count++
  return count
}

/** Reads a run of one answer twenty times. */
async function viewOf(
  store: Store,
  name: string,
  view: (store: Store, run: string) => Promise<unknown>,
): Promise<Task> {
  const agent = new Agent('Be brief.', { model: zeroLatency(0), builtins: false })
  const running = createRuntime({ store }).run(agent, Session.fromUserMessage('go'))
  await running
  const run = async () => {
    for (let i = 0; i < 20; i++) await view(store, running.runId)
  }
  return { name, operations: 20, run }
}

/** Ids are made in order of time, so the prefix of an old one has all the others behind it. */
async function prefixes(report: Report, folder: string): Promise<void> {
  const places = [
    ['SQLite', (count: number) => open(join(folder, `prefix-${count}.db`))],
    ['memory', () => openStore('memory:')],
  ] as const
  for (const [kind, openPlace] of places) {
    const opened = async (count: number, name: string): Promise<Task & { store: Store }> => {
      const store = await openPlace(count)
      const ids: string[] = []
      for (let done = 0; done < count; done += 1_000) {
        const made = Array.from({ length: 1_000 }, () => Session.fromUserMessage('hello'))
        await Promise.all(made.map(session => store.sessions.put(session)))
        ids.push(...made.map(session => session.id))
      }
      const asked = Array.from({ length: 50 }, (_, i) => (ids[i * 7] as string).slice(0, -2))
      const run = async () => {
        for (const prefix of asked) await store.sessions.row(prefix)
      }
      return { name, operations: asked.length, run, store }
    }
    const small = await opened(2_000, 'of 2k sessions')
    const large = await opened(64_000, 'per lookup')
    report(
      await compareTime(`a session by prefix of its id among 64k, ${kind}`, large, small, {
        target: ratioAtMost(2),
      }),
    )
    await Promise.all([small.store.close(), large.store.close()])
  }
}

async function longSession(report: Report, folder: string): Promise<void> {
  const size = 100_000
  const path = join(folder, 'long.db')
  const { id, text, forkIds } = await keepLong(path, size)
  report(
    await compareTime(
      'open a session of 100k chunks',
      {
        name: 'per chunk',
        operations: size,
        prepare: () => open(path),
        run: store => store.sessions.get(id),
        finish: store => store.close(),
      },
      {
        name: 'JSON.parse of its JSONL',
        operations: size,
        run: () => text.split('\n').map(line => (line === '' ? undefined : JSON.parse(line))),
      },
      { collect: 'major', rounds: 3, warmUps: 0 },
    ),
  )

  await using store = await open(path)
  const opened: Session[] = []
  const opening = (name: string, session: string): Task => ({
    name,
    operations: 1,
    run: async () => opened.push(await store.sessions.get(session)),
  })
  const cold = await timeOnce(opening('the session, cold', id))
  const times = []
  for (const fork of forkIds) times.push((await timeOnce(opening('', fork))).value)
  const fork: Figure = { value: spread(times).median, unit: 'ns', name: 'with 10 chunks of its own' }
  report(compareFigures('open a fork of 100k chunks in memory', fork, cold))
  if (opened.length !== forkIds.length + 1) throw new Error('unreachable')
  opened.length = 0

  await searching(report, store, size)
  const gc = await timeOnce({ name: 'per chunk', operations: size, run: () => store.gc({ dryRun: true }) })
  report({ what: 'gc of 100k chunks, dry run', ours: gc })
}

async function keepLong(path: string, size: number) {
  await using store = await open(path)
  const session = build(size, turn)
  await store.sessions.put(session)
  const forks = Array.from({ length: 7 }, () => build(10, said, session.fork()))
  for (const fork of forks) await store.sessions.put(fork)
  return { id: session.id, text: session.toJSONL(), forkIds: forks.map(fork => fork.id) }
}

async function searching(report: Report, store: Store, size: number): Promise<void> {
  const find = (query: string, name: string, operations: number): Task => ({
    name,
    operations,
    run: () => store.sessions.search(query),
  })
  const first = await timeOnce(find('part 40000', 'index, per chunk', size))
  report({ what: 'first search of 100k chunks', ours: first })
  for (const [what, query] of [['one chunk has', '40000'] as const, ['50k chunks have', 'answer'] as const]) {
    await timeOnce(find(query, '', 1))
    const times = []
    for (let i = 0; i < 5; i++) times.push((await timeOnce(find(query, '', 1))).value)
    const ours: Figure = { value: spread(times).median, unit: 'ns', name: 'per search' }
    report({ what: `search of 100k chunks for what ${what}`, ours })
  }
}

/** `normal`, so that the disk of the machine has no say in what is not about the disk. */
function open(path: string): Promise<Store> {
  return openStore(`sqlite:${path}`, { durability: 'normal' })
}

/** The file when everything in the log has been moved into it. */
function bytesOf(path: string): number {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  return statSync(path).size
}
