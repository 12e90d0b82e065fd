// A process of its own that lives one life of a program: `worker.ts FOLDER LIFE`.
import { appendFileSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createRuntime } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { Fuse, type Weather, worldOf } from './drive.ts'
import { endOf, isKnown } from './in-process.ts'
import type { Plan } from './plan.ts'
import { build } from './program.ts'

const [folder = '', life = ''] = process.argv.slice(2)
const { plan, weather } = JSON.parse(readFileSync(join(folder, 'program.json'), 'utf8')) as {
  plan: Plan
  weather: Weather
}
const book = join(folder, 'ledger.txt')
const ledger = {
  lines: () => readFileSync(book, 'utf8').split('\n'),
  add: (line: string) => appendFileSync(book, `${line}\n`),
}
const fuse = new Fuse(weather.lives[Number(life)], () => process.kill(process.pid, 'SIGKILL'))
await using store = await openStore(`sqlite:${join(folder, 'rath.db')}`, {
  secrets: {},
  durability: 'normal',
})
await using runtime = createRuntime({ store: fuse.around(store), workspaces: join(folder, 'workspaces') })
const memory = { backend: 'local', path: join(folder, 'memory') }
const workflow = build(plan, worldOf(weather, Number(life), fuse, ledger, memory))
const start = Session.fromUserMessage('Begin.').to('local', join(folder, 'project'))
writeSync(1, await endOf(isKnown('run', store), runtime, 'run', workflow, start))
