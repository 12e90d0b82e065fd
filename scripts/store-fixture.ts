// Writes test/fixtures/store-v1.db: a store as version 1 of the SQLite format left it, and so on. Run once for each version,
// never again: node scripts/store-fixture.ts
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Session } from '../src/session/session.ts'
import { migrations } from '../src/store/drivers/sqlite/schema.ts'
import { openStore } from '../src/store/open.ts'

const path = join(dirname(import.meta.dirname), `test/fixtures/store-v${migrations.length}.db`)
rmSync(path, { force: true })
const store = await openStore(`sqlite:${path}`, { secrets: {} })

const trunk = Session.fromUserMessage('Is the door open?', { at: 1000, by: 'Guard' })
const fork = trunk.fork({ label: 'doubt', at: 2000 })
await store.sessions.put(trunk, { tag: 'trunk' })
await store.sessions.put(fork, { tag: 'fork' })
await store.sessions.append(fork.id, [
  { kind: 'assistant', text: 'I looked twice.', at: 3000 },
  {
    kind: 'tool-result',
    callId: 'c',
    tool: 'look',
    outcome: { kind: 'value', value: 'a long look, '.repeat(2000) },
    at: 4000,
  },
])
await store.runs.create({ id: 'run', input: trunk.id, data: { step: 1 } })
const log = await store.runs.claim('run', 'worker', 1000)
await log.append([
  { kind: 'intend', entry: { key: 'look', occurrence: 0, kind: 'tool', request: { where: 'door' } } },
  { kind: 'conclude', key: 'look', occurrence: 0, outcome: 'open' },
])
await store.sessions.search('door')
await store.close()

// One file without a log beside it, as small as can be.
const db = new DatabaseSync(path)
db.exec('PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM')
db.close()
