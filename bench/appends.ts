import { hash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Session } from 'openrath'
import { type Durability, openStore, type Store } from 'openrath/store'
import pg from 'pg'
import { turn } from './chunks.ts'
import { compareTime, type Line, type Rounds, ratioAtMost, type Target, type Task } from './harness.ts'

/** At least 0.6 of the bare loop's rate. */
const target = ratioAtMost(1 / 0.6)
const concurrent = 100

/** The bare loop: `one` is a transaction with one row, `many` one with all of them. */
interface Bare {
  one(session: string, text: string): void | Promise<void>
  many(session: string, texts: readonly string[]): void | Promise<void>
  close(): void | Promise<void>
}

/** Both sides on one driver, each on a database of its own. */
export interface Bed {
  readonly driver: string
  store(durability: Durability): Promise<Store>
  bare(durability: Durability): Promise<Bare>
  /** What the bare loop is called. */
  readonly baseline: string
  /** The same loop, when it also finds a chunk by its digest and a session by its id: close to the least a store has to write. */
  linked?(durability: Durability): Promise<Bare>
}

export function sqliteBed(folder: string): Bed {
  let files = 0
  const path = () => join(folder, `appends-${files++}.db`)
  return {
    driver: 'sqlite',
    baseline: 'bare loop',
    store: durability => openStore(`sqlite:${path()}`, { durability }),
    bare: async durability => bareSqlite(path(), durability),
    linked: async durability => linkedSqlite(path(), durability),
  }
}

export function postgresBed(createDatabase: () => Promise<string>): Bed {
  return {
    driver: 'postgres',
    baseline: 'bare loop',
    store: async durability => openStore(await createDatabase(), { durability }),
    bare: async durability => barePostgres(await createDatabase(), durability),
  }
}

/** One at a time last: a round is too short to hide that the compiler is still at work, and thousands of appends come before. */
export async function appends(report: (line: Line) => void, bed: Bed): Promise<void> {
  for (const durability of ['full', 'normal'] as const) {
    report(await groupCommit(bed, durability, { count: 1_000, rounds: 7, target }))
  }
  report(await batches(bed, { count: 2_000, rounds: 5 }))
  for (const durability of ['full', 'normal'] as const) {
    report(await oneAtATime(bed, durability, single))
  }
  if (!bed.linked) return
  for (const durability of ['full', 'normal'] as const) {
    const least = { ...bed, bare: bed.linked, baseline: 'bare loop with an index of digests and a head' }
    report(await oneAtATime(least, durability, single))
  }
}

/** Short rounds, and many: in a long one a busy machine stops each side once, which is nothing to the slower and much to the other. */
const single = { count: 50, rounds: 61, warmUps: 100 }

interface Options extends Rounds {
  readonly count: number
  readonly target?: Target
}

function oneAtATime(bed: Bed, durability: Durability, options: Options): Promise<Line> {
  return onBoth(bed, durability, `${durability}, one at a time`, options, (store, bare, ids) => {
    const [id] = ids as [string]
    return [
      async from => {
        for (let i = from; i < from + options.count; i++) await store.sessions.append(id, [turn(i)])
      },
      async from => {
        for (let i = from; i < from + options.count; i++) {
          const inserted = bare.one(id, JSON.stringify(turn(i)))
          if (inserted) await inserted
        }
      },
    ]
  })
}

/** One outstanding append per session: what arrives together shares a transaction. The bare loop knows no such thing. */
function groupCommit(bed: Bed, durability: Durability, options: Options): Promise<Line> {
  const each = options.count / concurrent
  return onBoth(
    bed,
    durability,
    `${durability}, ${concurrent} sessions at a time`,
    options,
    (store, bare, ids) => [
      async from => {
        const writing = ids.map(async (id, session) => {
          for (let i = 0; i < each; i++) await store.sessions.append(id, [turn(from + session * each + i)])
        })
        await Promise.all(writing)
      },
      async from => {
        for (let i = 0; i < options.count; i++) {
          const inserted = bare.one(ids[i % ids.length] as string, JSON.stringify(turn(from + i)))
          if (inserted) await inserted
        }
      },
    ],
  )
}

function batches(bed: Bed, options: Options): Promise<Line> {
  const size = 100
  return onBoth(bed, 'normal', `normal, ${size} in a call`, options, (store, bare, ids) => {
    const [id] = ids as [string]
    const batch = (start: number) => Array.from({ length: size }, (_, i) => turn(start + i))
    return [
      async from => {
        for (let i = from; i < from + options.count; i += size) await store.sessions.append(id, batch(i))
      },
      async from => {
        for (let i = from; i < from + options.count; i += size) {
          const inserted = bare.many(
            id,
            batch(i).map(chunk => JSON.stringify(chunk)),
          )
          if (inserted) await inserted
        }
      },
    ]
  })
}

type Write = (from: number) => Promise<void>

/** Runs both sides on databases that grow from round to round, each round with other chunks. */
async function onBoth(
  { driver, baseline, store: open, bare: openBare }: Bed,
  durability: Durability,
  what: string,
  { count, ...options }: Options,
  sides: (store: Store, bare: Bare, ids: readonly string[]) => [Write, Write],
): Promise<Line> {
  await using store = await open(durability)
  const bare = await openBare(durability)
  try {
    const sessions = Array.from({ length: concurrent }, () => Session.create('empty'))
    await Promise.all(sessions.map(session => store.sessions.put(session)))
    const ids = sessions.map(session => session.id)
    const [ours, theirs] = sides(store, bare, ids)
    const task = (name: string, write: Write): Task => {
      let round = 0
      return { name, operations: count, run: () => write(round++ * count) }
    }
    const described = `append, ${driver}, ${what}`
    return await compareTime(described, task('per append', ours), task(baseline, theirs), options)
  } finally {
    await bare.close()
  }
}

const table = 'CREATE TABLE bare (n INTEGER PRIMARY KEY, session TEXT, body TEXT)'

function bareSqlite(path: string, durability: Durability): Bare {
  const db = new DatabaseSync(path)
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability}; ${table}`)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const insert = db.prepare('INSERT INTO bare (session, body) VALUES (?, ?)')
  const commit = db.prepare('COMMIT')
  return {
    one(session, text) {
      begin.run()
      insert.run(session, text)
      commit.run()
    },
    many(session, texts) {
      begin.run()
      for (const text of texts) insert.run(session, text)
      commit.run()
    },
    close: () => db.close(),
  }
}

function linkedSqlite(path: string, durability: Durability): Bare {
  const db = new DatabaseSync(path)
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durability};
    CREATE TABLE chunk (n INTEGER PRIMARY KEY, id BLOB UNIQUE, session TEXT, body TEXT);
    CREATE TABLE session (id TEXT PRIMARY KEY, head INTEGER)`)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const insert = db.prepare('INSERT INTO chunk (id, session, body) VALUES (?, ?, ?)')
  const add = db.prepare('INSERT OR IGNORE INTO session (id) VALUES (?)')
  const update = db.prepare('UPDATE session SET head = ? WHERE id = ?')
  const commit = db.prepare('COMMIT')
  const many = (session: string, texts: readonly string[]) => {
    begin.run()
    let head: number | bigint = 0
    for (const text of texts) {
      head = insert.run(hash('sha256', text, 'buffer'), session, text).lastInsertRowid
    }
    // An update leaves the index of ids alone, which is a page less to write.
    if (update.run(head, session).changes === 0) {
      add.run(session)
      update.run(head, session)
    }
    commit.run()
  }
  return { one: (session, text) => many(session, [text]), many, close: () => db.close() }
}

/** A statement outside a transaction is one, and needs one trip to the server. */
async function barePostgres(url: string, durability: Durability): Promise<Bare> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`SET synchronous_commit = ${durability === 'full' ? 'on' : 'off'}`)
  await client.query(table.replace('INTEGER', 'BIGSERIAL'))
  const text = 'INSERT INTO bare (session, body) VALUES ($1, $2)'
  const insert = async (session: string, body: string) => {
    await client.query({ name: 'insert', text, values: [session, body] })
  }
  return {
    one: insert,
    async many(session, texts) {
      await client.query('BEGIN')
      for (const body of texts) await insert(session, body)
      await client.query('COMMIT')
    },
    close: () => client.end(),
  }
}
