import assert from 'node:assert/strict'
import type { Json } from '../../base/json.ts'
import { Session } from '../../session/session.ts'
import type { RunRow, RunWrite } from '../../store/spec.ts'
import type { ConformanceCase } from '../conformance.ts'
import { refused } from '../refused.ts'
import { casesOn, type OpenStore } from './case.ts'
import type { CaseStore } from './run-methods.ts'

const minute = 60_000
const tool = (key: string, request: Json = { go: true }) => ({ key, occurrence: 0, kind: 'tool', request })

export function runCases(open: OpenStore): ConformanceCase[] {
  return casesOn(open, {
    async 'a run comes back as it was created, and only once'({ store, other }) {
      const before = Date.now()
      const run = await store.runs.create({ id: 'r', input: 's1', output: 's2', data: { a: [1, null] } })
      assert.deepEqual(run, {
        id: 'r',
        status: 'running',
        owner: null,
        fence: 0,
        leaseUntil: 0,
        input: 's1',
        output: 's2',
        data: { a: [1, null] },
        created: run.created,
        updated: run.created,
      })
      assert.ok(run.created >= before && run.created <= Date.now())
      assert.deepEqual(await (await other()).runs.get('r'), run)
      await refused(store.runs.create({ id: 'r' }), 'run-exists')
      const plain = await store.runs.create({ id: 'plain' })
      assert.deepEqual([plain.input, plain.output, plain.data], [null, null, {}])
    },

    async 'list gives the newest runs first, all or of one status'({ store }) {
      for (const id of ['a', 'b', 'c', 'd']) await store.runs.create({ id })
      const { fence } = await store.runs.claim('b', 'w', minute)
      await store.runs.update('b', fence, { status: 'done' })
      const ids = (rows: readonly RunRow[]) => rows.map(({ id }) => id)
      assert.deepEqual(ids(await store.runs.list()), ['d', 'c', 'b', 'a'])
      assert.deepEqual(ids(await store.runs.list({ limit: 2 })), ['d', 'c'])
      assert.deepEqual(ids(await store.runs.list({ status: 'done' })), ['b'])
      assert.deepEqual(ids(await store.runs.list({ status: 'running', limit: 2 })), ['d', 'c'])
    },

    async 'a claim is refused while another owner holds the lease, and allowed after'({ store, other }) {
      const second = await other()
      await store.runs.create({ id: 'r' })
      const first = await store.runs.claim('r', 'one', minute)
      assert.deepEqual([first.owner, first.fence], ['one', 1])
      assert.ok(first.leaseUntil > Date.now() && first.leaseUntil <= Date.now() + minute)
      const error = await refused(second.runs.claim('r', 'two', minute), 'run-owned')
      assert.equal(error.retry, 'after')
      assert.deepEqual(error.data, { run: 'r', owner: 'one', leaseUntil: first.leaseUntil })
      await store.runs.renew('r', 1, 0)
      const taken = await second.runs.claim('r', 'two', minute)
      assert.deepEqual([taken.owner, taken.fence], ['two', 2])
    },

    async 'each claim raises the fence, and a lower one can write nothing'({ store, other }) {
      const second = await other()
      await store.runs.create({ id: 'r' })
      const old = (await store.runs.claim('r', 'worker', minute)).fence
      await store.runs.intend('r', old, tool('open'))
      const now = (await second.runs.claim('r', 'worker', minute)).fence
      assert.ok(now > old)
      for (const write of [
        () => store.runs.renew('r', old, minute),
        () => store.runs.update('r', old, { status: 'failed' }),
        () => store.runs.intend('r', old, tool('new')),
        () => store.runs.intend('r', old, tool('open')),
        () => store.runs.conclude('r', old, 'open', 0, 'stale'),
      ]) {
        const error = await refused(write(), 'run-fenced')
        assert.deepEqual(error.data, { run: 'r', fence: now, given: old })
      }
      const run = await store.runs.get('r')
      assert.deepEqual([run.status, run.fence], ['running', now])
      const entries = await store.runs.journal('r')
      assert.deepEqual(
        entries.map(({ key, outcome }) => [key, outcome]),
        [['open', undefined]],
      )
      await second.runs.conclude('r', now, 'open', 0, 'fresh')
    },

    async 'a fence nobody was given can write nothing'({ store }) {
      await store.runs.create({ id: 'r' })
      for (const fence of [0, 1, -1, 0.5]) {
        await refused(store.runs.update('r', fence, { status: 'done' }), 'run-fenced')
      }
      await refused(store.runs.intend('nobody', 1, tool('k')), 'unknown-run')
    },

    async 'an update changes what it names, and may give the lease back'({ store }) {
      await store.runs.create({ id: 'r', input: 'in', data: { kept: true } })
      const { fence } = await store.runs.claim('r', 'one', minute)
      const waiting = await store.runs.update('r', fence, { status: 'waiting', output: 'out' })
      assert.deepEqual(
        [waiting.status, waiting.input, waiting.output, waiting.data, waiting.owner],
        ['waiting', 'in', 'out', { kept: true }, 'one'],
      )
      const released = await store.runs.update('r', fence, { data: { step: 2 }, release: true })
      assert.deepEqual([released.owner, released.leaseUntil, released.data], [null, 0, { step: 2 }])
      await refused(store.runs.update('r', fence, { status: 'done' }), 'run-fenced')
      assert.equal((await store.runs.claim('r', 'two', minute)).fence, fence + 1)
    },

    async 'the same intent again is returned as it stands'({ store, other }) {
      const fence = await started(store)
      const first = await store.runs.intend('r', fence, tool('k', { n: 1 }))
      assert.deepEqual({ ...first }, { run: 'r', ...tool('k', { n: 1 }), intendedAt: first.intendedAt })
      assert.deepEqual(await store.runs.intend('r', fence, tool('k', { n: 2 })), first)
      const concluded = await store.runs.conclude('r', fence, 'k', 0, { ok: true })
      assert.deepEqual(concluded.outcome, { ok: true })
      assert.ok((concluded.concludedAt ?? 0) >= first.intendedAt)
      assert.deepEqual(await (await other()).runs.intend('r', fence, tool('k')), concluded)
      const next = await store.runs.intend('r', fence, { ...tool('k'), occurrence: 1 })
      assert.equal(next.outcome, undefined)
    },

    async 'an outcome is there for ever, and a second one is refused'({ store, other }) {
      const fence = await started(store)
      for (const [key, outcome] of [
        ['a', null],
        ['b', 'text'],
        ['c', 0],
        ['d', [{ deep: false }]],
      ] as const) {
        await store.runs.intend('r', fence, tool(key))
        await store.runs.conclude('r', fence, key, 0, outcome)
        await refused((await other()).runs.conclude('r', fence, key, 0, 'other'), 'journal-conflict')
        assert.deepEqual((await store.runs.entry('r', key, 0))?.outcome, outcome)
      }
    },

    async 'an approval is decided by anybody, once, and nothing else is'({ store, other }) {
      const fence = await started(store)
      await store.runs.intend('r', fence, { ...tool('a'), kind: 'approval' })
      await store.runs.intend('r', fence, tool('t'))
      const second = await other()
      const decided = await second.runs.decide('r', 'a', 0, { verdict: 'approved' })
      assert.deepEqual(decided.outcome, { verdict: 'approved' })
      assert.deepEqual((await store.runs.entry('r', 'a', 0))?.outcome, { verdict: 'approved' })
      await refused(second.runs.decide('r', 'a', 0, { verdict: 'rejected' }), 'journal-conflict')
      await refused(second.runs.decide('r', 't', 0, 'done'), 'journal-conflict')
      await refused(second.runs.decide('r', 'never', 0, 'done'), 'journal-conflict')
      await refused(second.runs.decide('nobody', 'a', 0, 'done'), 'unknown-run')
      await store.runs.conclude('r', fence, 't', 0, 'still open')
    },

    async 'a claim takes the place of an owner who is named as gone, and of no other'({ store, other }) {
      await started(store)
      const second = await other()
      await refused(second.runs.claim('r', 'two', minute, { instead: 'somebody' }), 'run-owned')
      const { owner } = await store.runs.get('r')
      const taken = await second.runs.claim('r', 'two', minute, { instead: owner as string })
      assert.deepEqual([taken.owner, taken.fence], ['two', 2])
    },

    async 'a value is cleaned at once, to what is kept of it'({ store }) {
      const value = { text: 'no secret', list: [1, null] }
      assert.equal(store.clean(value), value)
      const session = Session.fromUserMessage('no secret')
      assert.equal(store.clean(session), session)
    },

    async 'an outcome without an intent is refused'({ store }) {
      const fence = await started(store)
      const error = await refused(store.runs.conclude('r', fence, 'never', 0, 1), 'journal-conflict')
      assert.match(error.message, /intent first/)
      assert.equal(await store.runs.entry('r', 'never', 0), undefined)
    },

    async 'of two connections that conclude at once exactly one wins'({ store, other }) {
      const stores = [store, await other()]
      const fence = await started(store)
      for (let round = 0; round < 20; round++) {
        const key = `race ${round}`
        await store.runs.intend('r', fence, tool(key))
        const results = await Promise.allSettled(
          Array.from({ length: 6 }, (_, i) => (stores[i % 2] ?? store).runs.conclude('r', fence, key, 0, i)),
        )
        const won = results.flatMap((result, i) => (result.status === 'fulfilled' ? [i] : []))
        assert.equal(won.length, 1)
        assert.equal((await store.runs.entry('r', key, 0))?.outcome, won[0])
      }
    },

    async 'of two workers that claim at once only the last can write'({ store, other }) {
      const stores = [store, await other()]
      await store.runs.create({ id: 'r' })
      const claims = await Promise.all(
        Array.from({ length: 8 }, (_, i) => (stores[i % 2] ?? store).runs.claim('r', 'worker', minute)),
      )
      const fences = claims.map(({ fence }) => fence).sort((a, b) => a - b)
      assert.deepEqual(fences, [1, 2, 3, 4, 5, 6, 7, 8])
      const writes = await Promise.allSettled(
        fences.map(fence => store.runs.intend('r', fence, tool(`${fence}`))),
      )
      assert.deepEqual(
        writes.map(({ status }) => status === 'fulfilled'),
        fences.map(fence => fence === 8),
      )
    },

    async 'several writes at once are kept in their order, a whole run among them'({ store, other }) {
      const session = Session.fromUserMessage('hi')
      const opens: readonly RunWrite[] = [
        { kind: 'put', session },
        { kind: 'intend', entry: tool('b') },
        { kind: 'intend', entry: tool('a') },
      ]
      await store.runs.begin({ id: 'r', input: session.id, data: { a: 1 } }, 'owner', minute).append(opens)
      const ends: readonly RunWrite[] = [
        { kind: 'conclude', key: 'b', occurrence: 0, outcome: { text: 'x'.repeat(100_000) } },
        { kind: 'put', session: session.user('more') },
        { kind: 'update', change: { status: 'done', output: session.id, release: true } },
      ]
      await store.runs.write('r', 1, ends)
      const second = await other()
      const { status, owner, input, output, data } = await second.runs.get('r')
      const kept = { status: 'done', owner: null, input: session.id, output: session.id, data: { a: 1 } }
      assert.deepEqual({ status, owner, input, output, data }, kept)
      const entries = await second.runs.journal('r')
      assert.deepEqual(
        entries.map(({ key, outcome }) => [key, JSON.stringify(outcome)?.length]),
        [
          ['b', 100_011],
          ['a', undefined],
        ],
      )
      assert.equal((await second.sessions.get(session.id)).state, session.state)
    },

    async 'one of several writes that is refused does not disturb the others'({ store }) {
      const fence = await started(store)
      const writes: readonly RunWrite[] = [
        { kind: 'intend', entry: tool('a') },
        { kind: 'conclude', key: 'nobody asked', occurrence: 0, outcome: 1 },
        { kind: 'conclude', key: 'a', occurrence: 0, outcome: 2 },
      ]
      await refused((async () => store.runs.write('r', fence, writes))(), 'journal-conflict')
      assert.deepEqual((await store.runs.entry('r', 'a', 0))?.outcome, 2)
      await store.runs.claim('r', 'owner', minute)
      await refused((async () => store.runs.write('r', fence, writes))(), 'run-fenced')
    },

    async 'a log whose run was claimed by another keeps no session, and one that gave the run back writes nothing more'({
      store,
      other,
    }) {
      const fence = await started(store)
      const session = Session.fromUserMessage('late')
      const late: readonly RunWrite[] = [
        { kind: 'update', change: { status: 'waiting', release: true } },
        { kind: 'intend', entry: tool('late') },
        { kind: 'update', change: { status: 'done' } },
      ]
      await refused((async () => store.runs.write('r', fence, late))(), 'run-fenced')
      assert.equal((await store.runs.get('r')).status, 'waiting')
      assert.deepEqual(await store.runs.journal('r'), [])
      await (await other()).runs.claim('r', 'another', minute)
      await refused((async () => store.runs.write('r', fence, [{ kind: 'put', session }]))(), 'run-fenced')
      await refused(store.sessions.row(session.id), 'unknown-session')
    },

    async 'what a log writes while the store is asked about a session goes behind that session'({ store }) {
      const fence = await started(store)
      const log = store.runs.log('r', fence)
      const session = Session.fromUserMessage('new here')
      const writing = [
        log.append([
          { kind: 'put', session },
          { kind: 'intend', entry: tool('a') },
        ]),
        log.append([{ kind: 'conclude', key: 'a', occurrence: 0, outcome: 1 }]),
        log.append([{ kind: 'put', session: session.user('more') }]),
      ]
      await Promise.all(writing)
      await log.settled()
      assert.equal((await store.runs.entry('r', 'a', 0))?.outcome, 1)
      assert.equal((await store.sessions.row(session.id)).length, 1)
    },

    async 'what several writes hold is JSON without secrets, or refused'({ store }) {
      const fence = await started(store)
      const unwritable = { kind: 'intend', entry: tool('k', { f: () => 1 } as never) } as const
      await refused((async () => store.runs.write('r', fence, [unwritable]))(), 'invalid-json')
      assert.deepEqual(await store.runs.journal('r'), [])
    },

    async 'the journal is in the order of its intents'({ store }) {
      const fence = await started(store)
      for (const key of ['z', 'a', 'm']) await store.runs.intend('r', fence, tool(key))
      for (const key of ['m', 'z']) await store.runs.conclude('r', fence, key, 0, key)
      const keys = (await store.runs.journal('r')).map(({ key, outcome }) => [key, outcome])
      assert.deepEqual(keys, [
        ['z', 'z'],
        ['a', undefined],
        ['m', 'm'],
      ])
      await refused(store.runs.journal('nobody'), 'unknown-run')
      await refused(store.runs.get('nobody'), 'unknown-run')
    },

    async 'runs of a queue are taken by priority, then by age, each by one'({ store, other }) {
      for (const [id, priority] of [
        ['low', -1],
        ['first', 0],
        ['second', 0],
        ['high', 5],
      ] as const)
        await store.runs.create({ id, queue: { name: 'q', priority } })
      await store.runs.create({ id: 'elsewhere', queue: { name: 'other' } })
      await store.runs.create({ id: 'inline' })
      assert.equal((await store.runs.get('high')).status, 'queued')
      const stores = [store, await other()]
      const take = (i: number) => (stores[i % 2] ?? store).runs.claimNext(`worker ${i}`, minute, ['q'])
      const taken = [await take(0), await take(1), await take(2), await take(3)]
      assert.deepEqual(
        taken.map(log => log?.run),
        ['high', 'first', 'second', 'low'],
      )
      assert.equal(await take(4), undefined)
      const row = await store.runs.get('first')
      assert.deepEqual([row.status, row.owner, row.fence], ['running', 'worker 1', 1])
      assert.deepEqual(row.queue, { name: 'q', priority: 0, notBefore: 0 })
      await taken[1]?.append([{ kind: 'intend', entry: tool('k') }])
      assert.equal((await store.runs.journal('first')).length, 1)
    },

    async 'of many who take at once each is given another run'({ store, other }) {
      const stores = [store, await other()]
      const ids = Array.from({ length: 20 }, (_, i) => `run ${i}`)
      for (const id of ids) await store.runs.create({ id, queue: { name: 'q' } })
      const taken = await Promise.all(
        Array.from({ length: 30 }, (_, i) => (stores[i % 2] ?? store).runs.claimNext(`w${i}`, minute, ['q'])),
      )
      const given = taken.flatMap(log => (log ? [log.run] : []))
      assert.equal(new Set(given).size, given.length)
      // Who finds a row locked passes it over: what is left is there for the next.
      const rest = () => store.runs.claimNext('late', minute, ['q'])
      for (let log = await rest(); log; log = await rest()) given.push(log.run)
      assert.deepEqual(given.sort(), ids.sort())
    },

    async 'a run whose driver is gone is taken again when its lease has ended, and not before'({ store }) {
      await store.runs.create({ id: 'r', queue: { name: 'q' } })
      const first = await store.runs.claimNext('one', minute, ['q'])
      assert.equal(await store.runs.claimNext('two', minute, ['q']), undefined)
      await first?.renew(0)
      const second = await store.runs.claimNext('two', minute, ['q'])
      assert.equal(second?.fence, 2)
      await refused((async () => first?.append([{ kind: 'intend', entry: tool('k') }]))(), 'run-fenced')
      await second?.append([{ kind: 'update', change: { status: 'done', release: true } }])
      assert.equal(await store.runs.claimNext('three', minute, ['q']), undefined)
    },

    async 'a run is not taken before its time'({ store }) {
      const soon = Date.now() + 3_600_000
      await store.runs.create({ id: 'later', queue: { name: 'q', notBefore: soon } })
      assert.equal(await store.runs.claimNext('w', minute, ['q']), undefined)
      assert.equal((await store.runs.get('later')).queue?.notBefore, soon)
      await refused(store.runs.create({ id: 'x', queue: { name: 'q', priority: 0.5 } }), 'invalid-argument')
      await refused(store.runs.create({ id: 'x', queue: { name: '' } }), 'invalid-argument')
    },

    async 'a decision makes a waiting run of a queue claimable, and no other'({ store, other }) {
      for (const id of ['inline', 'queued']) {
        const queue = id === 'queued' ? { queue: { name: 'q' } } : {}
        await store.runs.create({ id, ...queue })
        const log = await store.runs.claim(id, 'w', minute)
        await log.append([
          { kind: 'intend', entry: { ...tool('a'), kind: 'approval' } },
          { kind: 'update', change: { status: 'waiting', release: true } },
        ])
        assert.equal(await store.runs.claimNext('w', minute, ['q']), undefined)
        await (await other()).runs.decide(id, 'a', 0, { verdict: 'approved' })
      }
      assert.equal((await store.runs.get('inline')).status, 'waiting')
      assert.equal((await store.runs.claimNext('w', minute, ['q']))?.run, 'queued')
    },

    async 'a request to cancel reaches whoever drives the run, and ends one that nobody drives'({
      store,
      other,
    }) {
      const second = await other()
      const fence = await started(store)
      const asked = await second.runs.cancel('r', { by: 'ann', reason: 'too late' })
      assert.deepEqual([asked.status, asked.cancel?.by, asked.cancel?.reason], ['running', 'ann', 'too late'])
      assert.deepEqual((await store.runs.renew('r', fence, minute)).cancel, asked.cancel)
      assert.deepEqual((await second.runs.cancel('r', { by: 'bob' })).cancel, asked.cancel)
      await store.runs.update('r', fence, { status: 'cancelled', release: true })
      // Whoever resumes it does so on purpose.
      await store.runs.claim('r', 'again', minute)
      assert.equal((await store.runs.get('r')).cancel, undefined)
      await store.runs.create({ id: 'idle', queue: { name: 'q' } })
      assert.equal((await second.runs.cancel('idle')).status, 'cancelled')
      assert.equal(await store.runs.claimNext('w', minute, ['q']), undefined)
      await refused(store.runs.cancel('nobody'), 'unknown-run')
    },

    async 'the pages of a list follow each other, unmoved by what was added since'({ store }) {
      for (const id of ['a', 'b', 'c', 'd', 'e']) await store.runs.create({ id })
      const first = await store.runs.list({ limit: 2 })
      await store.runs.create({ id: 'new' })
      const next = await store.runs.list({ limit: 2, before: first.at(-1)?.id as string })
      assert.deepEqual(
        [...first, ...next].map(({ id }) => id),
        ['e', 'd', 'c', 'b'],
      )
    },

    async 'who follows runs is told of every change by any connection, also of those before a restart'({
      store,
      other,
    }) {
      const second = await other()
      const told: string[] = []
      let cursor: string | undefined
      const listen = ({ run, cursor: at }: { run: RunRow; cursor: string }) => {
        told.push(`${run.id} ${run.status}`)
        cursor = at
      }
      const until = async (line: string) => {
        while (!told.includes(line)) await new Promise(resolve => setTimeout(resolve, 5))
      }
      {
        using _ = store.runs.subscribe(listen)
        await store.runs.list()
        await second.runs.create({ id: 'r' })
        await until('r running')
        const { fence } = await second.runs.claim('r', 'w', minute)
        await second.runs.update('r', fence, { status: 'done', release: true })
        await until('r done')
      }
      await second.runs.create({ id: 'missed' })
      using _ = store.runs.subscribe(listen, { cursor: cursor as string })
      await until('missed running')
      assert.ok(told.length <= 6, told.join())
      assert.throws(() => store.runs.subscribe(listen, { cursor: 'nonsense' }), /cursor/)
    },

    async 'large requests and outcomes come back whole, and gc leaves them alone'({ store, other }) {
      const fence = await started(store)
      const request = { text: 'r'.repeat(100_000), odd: '\ud800'.repeat(20_000), like: { $blob: 'x' } }
      const outcome = Array.from({ length: 10_000 }, (_, i) => ({ i, text: `row ${i}` }))
      await store.runs.intend('r', fence, tool('k', request))
      await store.runs.conclude('r', fence, 'k', 0, outcome)
      assert.equal((await store.gc({ olderThan: 0 })).blobs, 0)
      const entry = await (await other()).runs.entry('r', 'k', 0)
      assert.deepEqual([entry?.request, entry?.outcome], [request, outcome])
    },
  })
}

/** A run `r` with an owner; returns its fence. */
async function started(store: CaseStore): Promise<number> {
  await store.runs.create({ id: 'r' })
  return (await store.runs.claim('r', 'owner', minute)).fence
}
