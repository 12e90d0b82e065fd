import { fork } from 'node:child_process'
import { startPostgres } from '../support/postgres.ts'
import { openStore } from '../../src/store/open.ts'
import { Session } from '../../src/session/index.ts'
if (process.argv[2]) {
  const [url, ids, n] = [process.argv[2], process.argv[3]!.split(','), Number(process.argv[4])]
  const store = await openStore(url)
  await Promise.all(Array.from({ length: 20 }, async (_, w) => { for (let i = 0; i < n / 20; i++) await store.sessions.append(ids[(w + i) % ids.length]!, [{ kind: 'user', content: `${process.pid} ${w} ${i}` }]) }))
  await store.close()
} else {
const server = await startPostgres()
try {
  const url = await server.createDatabase()
  const size = async () => Number((await server.query<any>(url, "SELECT sum(pg_total_relation_size(oid)) AS s FROM pg_class WHERE relnamespace='openrath'::regnamespace AND relkind='r'"))[0].s)
  const store = await openStore(url)
  let s = Session.create('empty')
  for (let i = 0; i < 1000; i++) s = s.user('chunk ' + i)
  await store.sessions.put(s)
  let before = await size(); let t = performance.now()
  const forks = s.forks(1000)
  await Promise.all(forks.map(f => store.sessions.put(f)))
  console.log('1000 forks', ((performance.now() - t) / 1000).toFixed(3), 'ms each', ((await size()) - before) / 1000, 'bytes each')
  before = await size()
  let turns = Session.create('empty'); 
  for (let i = 0; i < 5000; i++) turns = turns.user('question ' + i + ' word'.repeat(60)).append({ kind: 'assistant', text: 'answer ' + i + ' word'.repeat(100) })
  await store.sessions.put(turns)
  const json = turns.chunks.map(c => JSON.stringify({ ...c }).length).reduce((a, b) => a + b, 0)
  console.log('5000 turns', ((await size()) - before) / json, 'x of', json)
  let big = Session.create('empty')
  for (let i = 0; i < 100_000; i++) big = big.user('chunk number ' + i)
  t = performance.now(); await store.sessions.put(big); console.log('put 100k chunks', performance.now() - t)
  const other = await openStore(url)
  t = performance.now(); const g = await other.sessions.get(big.id); console.log('open 100k chunks', g.length, performance.now() - t)
  await server.query(url, `INSERT INTO openrath.session (n, id, head, length, branch, lineage, operation, created, updated) SELECT -g, 'x' || g, null, 0, '', '{"parents":[],"operation":"create","at":1,"extras":{}}', 'create', g, g FROM generate_series(1, 100000) g; ANALYZE openrath.session`)
  t = performance.now(); await other.sessions.list(); console.log('list first', performance.now() - t)
  t = performance.now(); await other.sessions.list(); console.log('list again', performance.now() - t)
  const shared = Array.from({ length: 8 }, () => Session.fromUserMessage('shared'))
  await Promise.all(shared.map(x => store.sessions.put(x)))
  t = performance.now()
  await Promise.all([0, 1, 2, 3].map(() => new Promise((res, rej) => fork(import.meta.filename, [url, shared.map(x => x.id).join(), '2000']).on('exit', c => c === 0 ? res(0) : rej(new Error('exit ' + c))))))
  const lengths = await Promise.all(shared.map(async x => (await other.sessions.row(x.id)).length))
  console.log('4 processes x 2000 into 8 shared sessions', performance.now() - t, 'ms; appended', lengths.reduce((a, b) => a + b, 0) - 8, await server.query(url, 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'))
  t = performance.now(); console.log(await other.gc({ dryRun: true, olderThan: 0 }), 'gc dry', performance.now() - t)
  t = performance.now(); console.log((await other.sessions.search('number 777')).length, 'first search', performance.now() - t)
  t = performance.now(); console.log((await other.sessions.search('number 778')).length, 'second search', performance.now() - t)
  await store.close(); await other.close()
} finally { await server.stop() }
}
