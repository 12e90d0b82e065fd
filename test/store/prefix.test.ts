import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { SortedIds } from '../../src/store/drivers/memory/sorted-ids.ts'
import { openStore } from '../../src/store/open.ts'
import { temporaryFolder } from '../sandbox/make.ts'

test('ids in memory are found by their beginning like a filter of all of them, whatever came and went in between', () => {
  const id = fc.string({
    unit: fc.constantFrom('a', 'b', 'é', '\u{1f600}', '\uffff'),
    minLength: 1,
    maxLength: 4,
  })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'find'), id), { maxLength: 120 }),
      steps => {
        const sorted = new SortedIds()
        const plain = new Set<string>()
        for (const [step, name] of steps) {
          if (step === 'delete') {
            if (plain.delete(name)) sorted.delete(name)
          } else if (step === 'add') {
            if (!plain.has(name)) sorted.add(name)
            plain.add(name)
          } else {
            const all = [...plain].filter(other => other.startsWith(name)).sort()
            expect(sorted.startingWith(name, 3)).toEqual(all.slice(0, 3))
          }
        }
      },
    ),
  )
})

test('a SQLite store looks a prefix up by index, between its first and its last id', async () => {
  using folder = temporaryFolder()
  const path = `${folder.path}/rath.db`
  const ids: string[] = []
  {
    await using store = await openStore(`sqlite:${path}`)
    for (let i = 0; i < 5; i++) ids.push((await store.sessions.put(Session.fromUserMessage(`${i}`))).id)
    for (const id of ids) expect((await store.sessions.get(id.slice(0, -1))).id).toBe(id)
    await expect(store.sessions.get(ids[0]?.slice(0, 8) as string)).rejects.toThrow('more than one')
  }
  const db = new DatabaseSync(path, { readOnly: true })
  const plan = db
    .prepare('EXPLAIN QUERY PLAN SELECT id FROM session WHERE id >= ? AND id < ? ORDER BY id LIMIT ?')
    .all('a', 'b', 6)
  db.close()
  expect(plan.map(row => row.detail)).toEqual([
    expect.stringMatching(/^SEARCH session USING COVERING INDEX .*\(id>\? AND id<\?\)$/),
  ])
})
