import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { type LocalMemoryOptions, localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import type { MemoryStore } from '../../src/memory/spec.ts'
import { Session } from '../../src/session/session.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from '../store/folder.ts'

function place(): string {
  const folder = temporaryFolder()
  onTestFinished(() => folder[Symbol.dispose]())
  return folder.path
}

const open = (path: string, options: LocalMemoryOptions = {}) =>
  localMemory({ durability: 'normal', ...options }).open({ path })

const found = async (store: MemoryStore, query: string) =>
  (await store.find(query, { limit: 100, floor: 0 })).hits.map(hit => hit.text)

test('without any set-up, memories lie in a private folder that git ignores', async () => {
  const folder = place()
  await using store = await localMemory({ folder }).open()
  await store.write([{ text: 'The tide is high.' }])
  const path = join(folder, '.openrath/memory/default/memory.db')
  expect(store.name).toBe('local:default')
  expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
  for (const name of ['.openrath', '.openrath/memory', '.openrath/memory/default'])
    expect((statSync(join(folder, name)).mode & 0o777).toString(8), name).toBe('700')
  expect(readFileSync(join(folder, '.openrath/.gitignore'), 'utf8')).toBe('*\n')
})

test('a name that could lead elsewhere is refused, and nothing is made', async () => {
  const folder = place()
  for (const name of ['../x', '/etc', '.', '..', 'a/b', '', '.hidden', 'x'.repeat(65), 7]) {
    const error = await refusalOf(localMemory({ folder }).open({ name } as never))
    expect(error.code, String(name)).toBe('invalid-argument')
  }
  expect(existsSync(join(folder, '.openrath'))).toBe(false)
})

for (const [what, bytes] of [
  ['is text', () => Buffer.from('dear diary, '.repeat(1000))],
  ['was cut short', (whole: Buffer) => whole.subarray(0, 8192)],
  ['has lost its header', (whole: Buffer) => Buffer.concat([Buffer.alloc(100), whole.subarray(100)])],
] as const) {
  test(`a file that ${what} is refused as corrupt and left as it is`, async () => {
    const path = place()
    const first = await open(path)
    await first.write(Array.from({ length: 50 }, (_, i) => ({ text: `Note ${i} about the harbour.` })))
    await first.close()
    const file = join(path, 'memory.db')
    const damaged = bytes(readFileSync(file))
    writeFileSync(file, damaged)
    const use = async () => {
      await using store = await open(path)
      await store.find('harbour')
    }
    const error = await refusalOf(use())
    expect(error).toMatchObject({ code: 'store-corrupt', retry: 'never' })
    expect(readFileSync(file).equals(damaged)).toBe(true)
  })
}

test('the database of another program, or of a newer version, is refused and left as it is', async () => {
  const path = place()
  const alter = (sql: string) => {
    const db = new DatabaseSync(join(path, 'memory.db'))
    db.exec(sql)
    db.close()
  }
  alter('CREATE TABLE theirs (a)')
  expect((await refusalOf(open(path))).code).toBe('store-foreign')
  alter('DROP TABLE theirs; VACUUM')
  await (await open(path)).close()
  alter('PRAGMA user_version = 99')
  expect((await refusalOf(open(path))).code).toBe('store-newer')
})

test('a text of ten megabytes is refused with the limit; one of a megabyte is kept and found', async () => {
  await using store = await open(place())
  const error = await refusalOf(store.write([{ text: 'lighthouse '.repeat(1_000_000) }]))
  expect(error.code).toBe('invalid-argument')
  expect(error.message).toContain('1,000,000')
  const text = `${'pebble '.repeat(142_000)}lighthouse`
  await store.write([{ text }])
  expect((await store.find('lighthouse')).hits[0]?.text).toBe(text)
})

test('an index across merges, updates and deletions matches what FTS5 matches', async () => {
  const store = await open(place())
  const oracle = new DatabaseSync(':memory:')
  oracle.exec("CREATE VIRTUAL TABLE doc USING fts5 (text, tokenize = 'unicode61')")
  let seed = 7
  const below = (limit: number) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return Math.floor((seed / 2 ** 32) * limit)
  }
  const text = () => Array.from({ length: 8 }, () => `w${below(900)}`).join(' ')
  const rows = new Map<string, number>()
  let row = 0
  const keep = (id: string, content: string) => {
    rows.set(id, ++row)
    oracle.prepare('INSERT INTO doc (rowid, text) VALUES (?, ?)').run(row, content)
  }
  const drop = (id: string) => {
    oracle.prepare('DELETE FROM doc WHERE rowid = ?').run(rows.get(id) as number)
    rows.delete(id)
  }
  for (let round = 0; round < 5; round++) {
    for (const entry of await store.write(Array.from({ length: 1_000 }, () => ({ text: text() }))))
      keep(entry.id, entry.text)
    const ids = [...rows.keys()]
    for (let i = 0; i < 150; i++) {
      const gone = ids.splice(below(ids.length), 1)[0] as string
      await store.forget(gone)
      drop(gone)
      const changed = ids[below(ids.length)] as string
      const content = text()
      await store.update(changed, { text: content })
      drop(changed)
      keep(changed, content)
    }
    for (let i = 0; i < 20; i++) {
      const asked = `w${below(900)}`
      const expected = oracle.prepare('SELECT rowid FROM doc WHERE doc MATCH ?').all(asked) as {
        rowid: number
      }[]
      const { hits } = await store.find(asked, { limit: 100, floor: 0 })
      expect(hits.map(hit => rows.get(hit.id) as number).sort(), asked).toEqual(
        expected.map(({ rowid }) => rowid).sort(),
      )
    }
  }
  await store.close()
  oracle.close()
})

test('whoever has a store open sees what another wrote, changed and forgot, across merges of the index', async () => {
  const path = place()
  await using writer = await open(path)
  await using reader = await open(path)
  for (let round = 0; round < 4; round++) {
    const texts = Array.from({ length: 1_500 }, (_, i) => `round${round} item${i} common${i % 50}`)
    const kept = await writer.write(texts.map(text => ({ text, scope: `user/${round}` })))
    expect((await found(reader, `round${round} item700`))[0]).toBe(`round${round} item700 common0`)
    await writer.forget(kept[700]?.id as string)
    await writer.update(kept[701]?.id as string, { text: `round${round} moved` })
    expect((await found(reader, `item700`)).filter(text => text.startsWith(`round${round} `))).toEqual([])
    expect((await found(reader, 'moved')).length).toBe(round + 1)
    expect((await reader.find('moved', { scope: `user/${round}`, floor: 0 })).hits.length).toBe(1)
    expect((await reader.tree()).entries).toBe((round + 1) * 1_499)
  }
})

test('what was acknowledged survives when two of four writers are killed, and the others later', async () => {
  const path = place()
  await (await open(path)).close()
  const acknowledged: string[] = []
  const writers = ['a', 'b', 'c', 'd'].map(name => {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'writer.ts'), path, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
    return { child, ended }
  })
  let lines = 0
  for (const { child } of writers) {
    createInterface({ input: child.stdout }).on('line', line => {
      acknowledged.push(line)
      lines++
      if (lines === 400) for (const one of writers.slice(0, 2)) one.child.kill('SIGKILL')
      if (lines === 700) for (const one of writers.slice(2)) one.child.kill('SIGKILL')
    })
  }
  await Promise.all(writers.map(({ ended }) => ended))
  expect(acknowledged.length).toBeGreaterThanOrEqual(700)
  await using store = await open(path)
  const lost: string[] = []
  for (const line of acknowledged) {
    const [name, i, word] = line.split(' ')
    const expected = `${name} number${i} ${word}`
    if (!(await found(store, `number${i} ${name}`)).includes(expected)) lost.push(line)
  }
  expect(lost).toEqual([])
  const db = new DatabaseSync(join(path, 'memory.db'))
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  db.close()
})

test('an index made by another tokenizer is made anew when the store is opened', async () => {
  const path = place()
  const first = await open(path)
  await first.write([{ text: 'The tide is high.', tags: ['sea'] }])
  await first.close()
  const db = new DatabaseSync(join(path, 'memory.db'))
  db.exec("UPDATE meta SET value = '0' WHERE name = 'tokenizer'; UPDATE tail SET words = 'other 1'")
  db.close()
  await using store = await open(path)
  expect(await found(store, 'tides')).toEqual(['The tide is high.'])
  expect((await store.list({ tags: ['sea'] })).entries.length).toBe(1)
})

test('a turn is found by the words of the turn before it, also when the two were written far apart', async () => {
  await using store = await open(place())
  const turn = (text: string, index: number) => ({ text, source: { series: 'talk', index } })
  await store.write([turn('Which colour does Ada want for the boat?', 0)])
  await store.write(Array.from({ length: 40 }, (_, i) => ({ text: `Filler number ${i}.` })))
  await store.write([turn('Turquoise, she said.', 1)])
  expect(await found(store, 'Ada boat colour')).toEqual([
    'Which colour does Ada want for the boat?',
    'Turquoise, she said.',
  ])
})

test('a turn that waits on another lane lends no words to its neighbours', async () => {
  await using store = await open(place())
  await store.write([
    { text: 'The secret word is marzipan.', lane: 'a', source: { series: 'talk', index: 0 } },
    { text: 'Very well.', source: { series: 'talk', index: 1 } },
  ])
  expect(await found(store, 'marzipan')).toEqual([])
  const seen = await store.find('marzipan', { lane: 'a', floor: 0 })
  expect(seen.hits.map(hit => hit.text)).toEqual(['The secret word is marzipan.', 'Very well.'])
})

test('a rejected branch is found as such, what it remembered included, and an adopted one is settled by the merge', async () => {
  await using store = await open(place())
  const trunk = Session.fromUserMessage('Where is the treasure?')
  const [left, right] = trunk.forks(['left', 'right'])
  const remember = async (branch: Session, text: string) => {
    const [entry] = await store.write([{ text, lane: branch.lineage.lane ?? '' }])
    return branch.append({
      kind: 'memory',
      op: 'remember',
      store: store.name,
      entries: [entry?.id as string],
    })
  }
  const digging = await remember(left.user('Dig in the garden.'), 'The garden is all clay.')
  const diving = await remember(right.user('Dive in the lake.'), 'The lake is shallow.')
  await store.commit(digging)
  const merged = (await digging.merge(diving)).append({
    kind: 'verdict',
    verdict: 'reject',
    subject: 'left',
    reason: 'clay',
  })
  const { settled } = await store.commit(merged)
  expect(settled).toBe(1)
  const standing = async (query: string) => (await store.find(query)).hits[0]?.standing
  expect(await standing('garden dig')).toBe('rejected')
  expect(await standing('lake shallow')).toBe('adopted')
  expect((await store.commit(merged)).written).toEqual([])
})

test('forgetting a scope takes what waits on lanes with it; a filter of nothing is refused', async () => {
  await using store = await open(place())
  await store.write([
    { text: 'one', scope: 'user/ada', lane: 'a' },
    { text: 'two', scope: 'user/ada' },
    { text: 'three', scope: 'user/eve', lane: 'a/b' },
    { text: 'four', scope: 'user/eve' },
  ])
  expect((await refusalOf(store.forget({}))).code).toBe('invalid-argument')
  expect(await store.forget({ scope: 'user/ada' })).toBe(2)
  expect(await store.forget({ lane: 'a' })).toBe(1)
  expect((await store.list()).entries.map(entry => entry.text)).toEqual(['four'])
})

test('a forgotten text is nowhere in the tables', async () => {
  const path = place()
  const store = await open(path)
  const [entry] = await store.write([{ text: 'the password is xyzzy', tags: ['t'] }])
  await store.update(entry?.id as string, { text: 'the password is plugh' })
  await store.forget(entry?.id as string)
  await store.close()
  const db = new DatabaseSync(join(path, 'memory.db'))
  for (const table of ['entry', 'revision', 'tail', 'posting'])
    expect(db.prepare(`SELECT count(*) AS count FROM ${table}`).get(), table).toEqual({ count: 0 })
  db.close()
})
