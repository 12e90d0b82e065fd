// Fills a small disk with a store, kills the writer there, frees some space, and goes on: node full-disk.ts FOLDER
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../../src/store/open.ts'
import { runFile } from '../program.ts'
import { Acknowledged } from './acknowledged.ts'

const folder = process.argv[2] as string
const url = `sqlite:${folder}/rath.db`
const ballast = (name: number) => join(folder, `ballast-${name}`)
const rounds = 5
for (let i = 0; i < rounds; i++) writeFileSync(ballast(i), Buffer.alloc(300_000, 1))

const acknowledged = new Acknowledged()
let filled = 0
for (let round = 0; round < rounds; round++) {
  const writer = runFile(join(import.meta.dirname, 'writer.ts'), url, 'full', String(round))
  let after = 0
  for await (const line of writer.lines()) {
    const isFull = line === 'error store-full'
    if (line.startsWith('error ') && !isFull) throw new Error(line)
    if (isFull && after === 0 && filled === round) {
      filled++
      rmSync(ballast(round))
    }
    // The same writer goes on once there is space again; then it is killed.
    if (acknowledged.add(line) && filled > round && ++after === 5) writer.child.kill('SIGKILL')
  }
}

const store = await openStore(url, { secrets: {} })
const problems = await acknowledged.problems(store)
for (const problem of problems.slice(0, 10)) console.log(problem)
const row = await store.sessions.append((await store.sessions.row('trunk-0')).id, [
  { kind: 'user', text: 'on' },
])
const went = row.length > 0 ? 'went on after' : 'did not go on'
console.log(
  `filled ${filled} times, ${acknowledged.count} acknowledgements, ${problems.length} problems, ${went}`,
)
await store.close()
