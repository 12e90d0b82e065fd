import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRuntime } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import { worker, writes } from './make.ts'

// Works on files until it is killed, and says the id of each session that the store has acknowledged.
const [store, workspaces, project, seed] = process.argv.slice(2) as [string, string, string, string]
const runtime = createRuntime({ store, workspaces })
let session = Session.fromUserMessage('go').to('local', project)
process.stdout.write('ready\n')
for (let i = 0; ; i++) {
  // What nobody's tool wrote counts too.
  writeFileSync(join(project, `found-${i % 3}`), `${seed} ${i}`)
  session = await runtime.run(worker('w', [writes(`f${i % 7}`, `${seed} ${i} ${'x'.repeat(200)}`)]), session)
  process.stdout.write(`${session.id}\n`)
}
