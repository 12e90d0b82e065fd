import { hash } from 'node:crypto'
import { type Chunk, type ChunkInput, Session, sessionGraph } from 'openrath'
import type { GraphNode } from 'openrath/session'
import { build, said, short, turn, type Write } from './chunks.ts'
import {
  type Bench,
  collectGarbage,
  compareFigures,
  compareHeap,
  compareTime,
  type Line,
  measureGrowth,
  measureHeap,
  ratioAtMost,
  type Task,
  timeOnce,
  valueBelow,
} from './harness.ts'

type Report = (line: Line) => void

/** The small heap first: what a million live chunks cost the collector must not show where it does not belong. */
export const bench: Bench = async report => {
  await append(report)
  await views(report)
  await files(report)
  await graph(report)
  await longSession(report)
}

async function append(report: Report): Promise<void> {
  const sizes = [1_000, 10_000, 100_000]
  const { growth } = await measureGrowth(
    'append one by one and head',
    sizes,
    size => appendAndHead(said, size),
    {
      target: valueBelow(1.1),
      rounds: 5,
      collect: 'major',
    },
  )
  report(growth)
  for (const [name, write] of [['short user texts', said] as const, ['tool-using turns', turn] as const]) {
    report(
      await compareTime(
        `append 100k ${name} and head`,
        appendAndHead(write, 100_000),
        plainAndHash(write, 100_000),
        { target: ratioAtMost(3), collect: 'major', rounds: 5, warmUps: 1 },
      ),
    )
  }
  report(
    await compareTime(
      'append 10k tool-using turns, no digest asked',
      { name: 'per chunk', operations: 10_000, run: () => build(10_000, turn) },
      plainAndHash(turn, 10_000),
      { collect: 'major' },
    ),
  )
  const asking = (name: string, run: (session: Session) => unknown): Task<Session> => ({
    name,
    operations: 10_000,
    prepare: () => build(10_000, turn),
    run,
  })
  const state = asking('state, per chunk', session => session.state)
  const head = asking('head, per chunk', session => session.head)
  report(await compareTime('first state of 10k tool-using turns', state, head, { collect: 'major' }))
}

async function views(report: Report): Promise<void> {
  const { growth, perOperation } = await measureGrowth('messages()', [1_000, 10_000, 100_000], size => {
    const session = build(size, turn)
    return { name: `per chunk, ${short(size)}`, operations: size, run: () => session.messages() }
  })
  for (const line of perOperation) report(line)
  report(growth)
}

async function files(report: Report): Promise<void> {
  const size = 10_000
  const session = build(size, turn)
  const text = session.toJSONL()
  const records = text
    .split('\n')
    .slice(1, -2)
    .map(line => JSON.parse(line) as object)
  const operations = size
  report(
    await compareTime(
      'toJSONL of 10k chunks',
      { name: 'per chunk', operations, run: () => session.toJSONL() },
      {
        name: 'JSON.stringify',
        operations,
        run() {
          let lines = ''
          for (const record of records) lines += `${JSON.stringify(record)}\n`
          return lines
        },
      },
    ),
  )
  report(
    await compareTime(
      'fromJSONL of 10k chunks',
      { name: 'per chunk', operations, run: () => Session.fromJSONL(text) },
      {
        name: 'JSON.parse',
        operations,
        run: () => text.split('\n').map(line => (line === '' ? undefined : JSON.parse(line))),
      },
    ),
  )
  report(
    await compareTime(
      'verify of 10k chunks',
      { name: 'per chunk', operations, run: () => session.verify() },
      plainAndHash(turn, size),
    ),
  )
}

async function graph(report: Report): Promise<void> {
  const { growth, perOperation } = await measureGrowth('sessionGraph', [1_000, 10_000, 100_000], size => {
    const rows = family(size)
    const first = rows[0] as GraphNode
    return {
      name: `per node, ${short(size)}`,
      operations: size,
      run: () => sessionGraph(rows).descendants(first.id),
    }
  })
  report(perOperation.at(-1) as Line)
  report(growth)
}

async function longSession(report: Report): Promise<void> {
  const small = build(10, said)
  const thousand = build(1_000, said)
  const million = build(1_000_000, said)

  await coldMerge(report, million)
  void thousand.head

  const forking = (session: Session, name: string): Task<Session[]> => ({
    name,
    operations: 10_000,
    prepare: () => new Array<Session>(10_000),
    run(forks) {
      for (let i = 0; i < 10_000; i++) forks[i] = session.fork()
      return forks
    },
  })
  report(
    await compareTime('fork of 1M chunks', forking(million, 'per fork'), forking(small, '10 chunks'), {
      target: ratioAtMost(3),
      rounds: 15,
    }),
  )
  const count = 10_000
  report(
    compareHeap(
      'heap of a fork of 1M chunks',
      { name: 'per fork', count, make: () => million.fork() },
      { name: '10 chunks', count, make: () => small.fork() },
      { target: ratioAtMost(3) },
    ),
  )
  report(
    measureHeap(
      'heap of a fork of 1M chunks with one append',
      { name: 'each of 10,000', count, make: i => million.fork().append(said(i)) },
      { target: valueBelow(1024) },
    ),
  )
  report(
    measureHeap('… and its head asked', {
      name: 'each of 10,000',
      count,
      make(i) {
        const fork = million.fork().append(said(i))
        void fork.head
        return fork
      },
    }),
  )

  for (const asked of [false, true]) {
    report(
      await compareTime(
        `merge of two 1k branches off 1M${asked ? ', their heads asked' : ''}`,
        merging(million, asked, 'per merge'),
        merging(thousand, asked, 'off 1k'),
        { target: ratioAtMost(3), rounds: 15 },
      ),
    )
  }

  const list = million.chunks
  const array = list.slice()
  report(
    await compareTime(
      'chunks.at(random) of 1M',
      reading(i => list.at(i), 1_000_000, 'per read'),
      reading(i => thousand.chunks.at(i), 1_000, '1k chunks'),
    ),
  )
  report(
    await compareTime(
      'chunks.at(random) of 1M',
      reading(i => list.at(i), 1_000_000, 'per read'),
      reading(i => array[i], 1_000_000, 'array of 1M'),
    ),
  )
}

/** The first digest ever asked of a history computes all of them, so this can be measured once per history. */
async function coldMerge(report: Report, million: Session): Promise<void> {
  collectGarbage()
  const warmUp = merging(build(1_000, said), false, 'off 1k')
  for (let i = 0; i < 5; i++) await timeOnce(warmUp)
  const baseline = await timeOnce(merging(build(1_000, said), false, 'off 1k, cold too'))
  const ours = await timeOnce(merging(million, false, 'once'))
  report(compareFigures('COLD merge off 1M: computes the 1M ids nobody asked for', ours, baseline))
}

function merging(ancestor: Session, headsAsked: boolean, name: string): Task<[Session, Session]> {
  return {
    name,
    operations: 1,
    prepare() {
      const [ours, theirs] = ancestor.forks(2).map(fork => build(1_000, said, fork)) as [Session, Session]
      if (headsAsked) void [ours.head, theirs.head]
      return [ours, theirs]
    },
    run: ([ours, theirs]) => ours.merge(theirs),
  }
}

function reading(read: (i: number) => Chunk | undefined, size: number, name: string): Task<Int32Array> {
  const operations = 20_000
  return {
    name,
    operations,
    prepare: () => Int32Array.from({ length: operations }, () => Math.floor(Math.random() * size)),
    run(indexes) {
      let sum = 0
      for (const i of indexes) sum += read(i)?.at ?? 0
      return sum
    },
  }
}

/** All ids are computed when `head` is asked, as they are when a session is first recorded. */
function appendAndHead(write: Write, size: number): Task {
  return { name: 'per chunk', operations: size, run: () => build(size, write).head }
}

/** The floor: the same plain objects, each written as JSON and hashed once behind the hash of the one before. */
function plainAndHash(write: Write, size: number): Task {
  return {
    name: 'objects, JSON.stringify, sha256',
    operations: size,
    run() {
      const chunks: { body: ChunkInput; id: string }[] = []
      let id = ''
      for (let i = 0; i < size; i++) {
        const body = write(i)
        id = hash('sha256', id + JSON.stringify(body))
        chunks.push({ body, id })
      }
      return chunks
    },
  }
}

/** Rows as a store keeps them: a long chain with a fork and a merge in every ten. */
function family(size: number): GraphNode[] {
  const rows: GraphNode[] = []
  const row = (operation: string, parents: readonly string[]) => {
    const id = `s-${rows.length}`
    rows.push({ id, lineage: { parents, operation, at: rows.length, extras: {} } })
    return id
  }
  let last = row('create', [])
  while (rows.length < size) {
    if (rows.length % 10 !== 0 || rows.length + 3 > size) last = row('append', [last])
    else last = row('merge', [row('fork', [last]), row('append', [last])])
  }
  return rows
}
