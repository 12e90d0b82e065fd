import { fork } from 'node:child_process'
import { Session } from '../../src/session/index.ts'
import { openStore } from '../../src/store/open.ts'

if (process.argv[2]) {
  const [url, ids, n] = [process.argv[2], process.argv[3]!.split(','), Number(process.argv[4])]
  const store = await openStore(url)
  let done = 0
  const p = setInterval(() => console.log(process.pid, done), 3000)
  await Promise.all(
    Array.from({ length: 20 }, async (_, w) => {
      for (let i = 0; i < n / 20; i++) {
        await store.sessions.append(ids[(w + i) % ids.length]!, [
          { kind: 'user', content: `${process.pid} ${w} ${i}` },
        ])
        done++
      }
    }),
  )
  clearInterval(p)
  console.log(process.pid, 'closing', done)
  await store.close()
  console.log(process.pid, 'closed')
} else {
  const { startPostgres } = await import('../support/postgres.ts')
  const server = await startPostgres()
  try {
    const url = await server.createDatabase()
    const store = await openStore(url)
    const other = await openStore(url)
    const shared = Array.from({ length: 8 }, () => Session.fromUserMessage('shared'))
    await Promise.all(shared.map(x => store.sessions.put(x)))
    let t = performance.now()
    const look = setInterval(
      async () =>
        console.log(
          (
            await server.query<any>(
              url,
              "SELECT pid, state, wait_event_type, wait_event, left(query, 50) q FROM pg_stat_activity WHERE application_name = 'openrath'",
            )
          )
            .map(r => Object.values(r).join(' '))
            .join('\n'),
        ),
      8000,
    )
    await Promise.all(
      [0, 1, 2, 3].map(
        () =>
          new Promise((res, rej) =>
            fork(import.meta.filename, [url, shared.map(x => x.id).join(), '2000']).on('exit', c =>
              c === 0 ? res(0) : rej(new Error('exit ' + c)),
            ),
          ),
      ),
    )
    clearInterval(look)
    const lengths = await Promise.all(shared.map(async x => (await other.sessions.row(x.id)).length))
    console.log(
      '4 processes x 2000 into 8 shared sessions',
      performance.now() - t,
      'ms; appended',
      lengths.reduce((a, b) => a + b, 0) - 8,
      await server.query(url, 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'),
    )

    const size = async () => Number((await server.query<any>(url, "SELECT sum(pg_total_relation_size(oid)) AS s FROM pg_class WHERE relnamespace='openrath'::regnamespace AND relkind='r'"))[0].s)
  const before = await size()
  let turns = Session.create('empty'); 
  for (let i = 0; i < 5000; i++) turns = turns.user('question ' + i + ' word'.repeat(60)).append({ kind: 'assistant', text: 'answer ' + i + ' word'.repeat(100) })
  await store.sessions.put(turns)
  const json = turns.chunks.map(c => JSON.stringify({ ...c }).length).reduce((a, b) => a + b, 0)
  console.log('5000 turns', ((await size()) - before) / json, 'x of', json)
  let big = Session.create('empty')
    for (let i = 0; i < 100_000; i++) big = big.user('chunk number ' + i)
    t = performance.now()
    await store.sessions.put(big)
    console.log('put 100k chunks', performance.now() - t)
    t = performance.now()
    const rows = await (await import('../../src/store/drivers/postgres/index.ts'))
      .postgresDriver(url)
      .then(async d => {
        for (const p of [64, 1024, 8192, 8192, 30000]) {
          const t = performance.now()
          await d.chunkRows(big.head!, 0, p)
          console.log('chunkRows', p, performance.now() - t)
        }
        await d.close()
      })
    t = performance.now()
    const g = await other.sessions.get(big.id)
    console.log('open 100k chunks', g.length, performance.now() - t)
    t = performance.now()
    console.log(await other.gc({ dryRun: true, olderThan: 0 }), 'gc dry', performance.now() - t)
    t = performance.now()
    console.log((await other.sessions.search('number 777')).length, 'first search', performance.now() - t)
    t = performance.now()
    console.log((await other.sessions.search('number 778')).length, 'second search', performance.now() - t)
    console.log(
      await server.query(
        url,
        "SELECT relname, pg_relation_size(oid) AS s, pg_total_relation_size(oid) AS t FROM pg_class WHERE relnamespace='openrath'::regnamespace AND relkind='r' ORDER BY 3 DESC LIMIT 4",
      ),
    )
    await store.close()
    await other.close()
  } finally {
    await server.stop()
  }
}
