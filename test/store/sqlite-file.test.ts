import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { StoreOptions } from '../../src/store/spec.ts'
import { refusalOf } from '../session/make.ts'
import { inPrivateMounts, mountProblem } from '../support/mounts.ts'
import { temporaryFolder } from './folder.ts'
import { runFile } from './program.ts'

const here = import.meta.dirname
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

function place(...names: string[]): string {
  const folder = temporaryFolder()
  onTestFinished(() => folder[Symbol.dispose]())
  return join(folder.path, ...names)
}

const open = (path: string, options: StoreOptions = {}) =>
  openStore(`sqlite:${path}`, { secrets: {}, durability: 'normal', ...options })

/** A closed store with one session of one chunk, tagged `t`. */
async function stored(path: string): Promise<string> {
  await using store = await open(path)
  const session = Session.fromUserMessage('hello')
  await store.sessions.put(session, { tag: 't' })
  return session.id
}

test('the folder of a project is made private and ignored by git', async () => {
  const path = place('.openrath', 'rath.db')
  await using store = await open(path)
  await store.blobs.put('x')
  expect(mode(join(path, '..'))).toBe('700')
  expect(readFileSync(join(path, '../.gitignore'), 'utf8')).toBe('*\n')
  for (const file of [path, `${path}-wal`]) expect(mode(file), file).toBe('600')
  expect(store.url).toBe(`sqlite:${path}`)
})

test('a .gitignore that is there stays, and other folders get none', async () => {
  const path = place('.openrath', 'rath.db')
  mkdirSync(join(path, '..'))
  writeFileSync(join(path, '../.gitignore'), 'mine\n')
  await (await open(path)).close()
  expect(readFileSync(join(path, '../.gitignore'), 'utf8')).toBe('mine\n')
  const other = place('deep', 'down', 'rath.db')
  await (await open(other)).close()
  expect(existsSync(join(other, '../.gitignore'))).toBe(false)
  expect(mode(join(other, '../..'))).toBe('700')
})

test('several processes may open a new store at the same time', async () => {
  const path = place('rath.db')
  const stores = await Promise.all(Array.from({ length: 8 }, () => open(path)))
  await Promise.all(stores.map(store => store.blobs.put(`from ${stores.indexOf(store)}`)))
  await Promise.all(stores.map(store => store.close()))
})

test('a write waits while another process holds the write lock', async () => {
  const path = place('rath.db')
  const id = await stored(path)
  await using store = await open(path)
  const holder = runFile(join(here, 'hold-lock.ts'), path)
  expect(await holder.line()).toBe('held')
  const order: string[] = []
  const append = store.sessions
    .append(id, [{ kind: 'user', text: 'patient' }])
    .then(() => order.push('appended'))
  expect((await store.sessions.row(id)).length).toBe(1)
  order.push('let go')
  holder.child.stdin?.end()
  await append
  expect(order).toEqual(['let go', 'appended'])
  expect(await holder.ended()).toBe(0)
})

test('a write gives up as busy after busyTimeout, and nothing of it is kept', async () => {
  const path = place('rath.db')
  const id = await stored(path)
  await using store = await open(path, { busyTimeout: 0 })
  const holder = runFile(join(here, 'hold-lock.ts'), path)
  expect(await holder.line()).toBe('held')
  const error = await refusalOf(store.sessions.append(id, [{ kind: 'user', text: 'late' }]))
  expect(error).toMatchObject({ code: 'store-busy', retry: 'after' })
  expect(error.message).toContain(path)
  holder.child.stdin?.end()
  await holder.ended()
  expect((await store.sessions.append(id, [{ kind: 'user', text: 'again' }])).length).toBe(2)
})

const damages: Record<string, (bytes: Buffer) => Buffer> = {
  'is text': () => Buffer.from('dear diary, '.repeat(1000)),
  'has lost its header': bytes => Buffer.concat([Buffer.alloc(100), bytes.subarray(100)]),
  'has a broken schema': bytes =>
    Buffer.concat([bytes.subarray(0, 100), Buffer.alloc(3996, 7), bytes.subarray(4096)]),
  'was cut short': bytes => bytes.subarray(0, 8192),
}
for (const [what, damage] of Object.entries(damages)) {
  test(`a file that ${what} is refused as corrupt and left as it is`, async () => {
    const path = place('rath.db')
    await stored(path)
    const damaged = damage(readFileSync(path))
    writeFileSync(path, damaged)
    const use = async () => {
      await using store = await open(path)
      await store.sessions.get('t')
    }
    const error = await refusalOf(use())
    expect(error).toMatchObject({ code: 'store-corrupt', retry: 'never' })
    expect(error.message).toMatch(/backup|another path/)
    expect(readFileSync(path).equals(damaged)).toBe(true)
  })
}

test('a chunk that was altered in the file does not verify, and one that is no chunk is corrupt', async () => {
  const path = place('rath.db')
  await stored(path)
  const alter = (sql: string) => {
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
  }
  const read = async () => {
    await using store = await open(path)
    return store.sessions.get('t')
  }
  alter("UPDATE chunk SET body = replace(body, 'hello', 'hullo')")
  expect((await read()).verify()).toMatchObject({ ok: false, problem: { index: 0 } })
  for (const body of ['{"kind":"whisper"}', '{"kind":"user"', '']) {
    alter(`UPDATE chunk SET body = '${body}'`)
    expect((await refusalOf(read())).code).toBe('store-corrupt')
  }
  alter('DELETE FROM chunk')
  expect((await refusalOf(read())).code).toBe('store-corrupt')
})

for (const journal of ['DELETE', 'WAL']) {
  test(`the database of another program (${journal}) is refused and left as it is`, async () => {
    const path = place('theirs.db')
    const db = new DatabaseSync(path)
    db.exec(
      `PRAGMA journal_mode = ${journal}; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1); PRAGMA user_version = 1`,
    )
    db.close()
    const before = readFileSync(path)
    for (const options of [{}, { readOnly: true }]) {
      const error = await refusalOf(open(path, options))
      expect(error).toMatchObject({ code: 'store-foreign', blame: 'caller' })
      expect(error.message).toContain('another path')
      expect(readFileSync(path).equals(before)).toBe(true)
    }
  })
}

test('a store of a newer format is refused and left as it is', async () => {
  const path = place('rath.db')
  await stored(path)
  const db = new DatabaseSync(path)
  db.exec('PRAGMA journal_mode = DELETE; PRAGMA user_version = 99')
  db.close()
  const before = readFileSync(path)
  for (const options of [{}, { readOnly: true }]) {
    const error = await refusalOf(open(path, options))
    expect(error).toMatchObject({ code: 'store-newer', data: { version: 99 } })
    expect(error.message).toContain('update openrath')
    expect(readFileSync(path).equals(before)).toBe(true)
  }
})

test('a store that does not exist is not made by opening it to read', async () => {
  const path = place('nowhere', 'rath.db')
  expect((await refusalOf(open(path, { readOnly: true }))).code).toBe('store-failed')
  expect(existsSync(path)).toBe(false)
  const taken = place('file')
  writeFileSync(taken, '')
  expect((await refusalOf(open(join(taken, 'rath.db')))).code).toBe('store-failed')
})

test('a read-only disk is named as such, and a store on it can be read', async context => {
  const problem = mountProblem()
  if (problem) return context.skip(problem)
  const path = place('store', 'rath.db')
  await stored(path)
  const script = `mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; exec "$2" "$3" "$1"`
  const { output } = inPrivateMounts(
    script,
    join(path, '..'),
    process.execPath,
    join(here, 'read-only-disk.ts'),
  )
  expect(output.trim().split('\n')).toEqual(['write: store-read-only', 'new: store-read-only', 'read: 1'])
})

test('somebody who may not write is told so', async context => {
  if (process.getuid?.() !== 0) return context.skip('needs root, to become somebody else')
  const path = place('store', 'rath.db')
  await stored(path)
  execFileSync('chmod', ['-R', 'go+rX', join(path, '../..')])
  const script = `exec setpriv --reuid=65534 --regid=65534 --clear-groups "$2" "$3" "$1"`
  const { output } = inPrivateMounts(
    script,
    join(path, '..'),
    process.execPath,
    join(here, 'read-only-disk.ts'),
  )
  expect(output).toContain('write: store-read-only\nnew: store-read-only\n')
})
