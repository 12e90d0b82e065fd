// A process of its own that works on a run: `worker.ts FOLDER COMMAND RUN …`. It says what it does, a line each, so that whoever
// started it can kill it anywhere.
import { appendFileSync, writeSync } from 'node:fs'
import type { RathError } from '../../../src/base/errors.ts'
import { createRuntime } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { Expedition, placesIn, Till } from './expedition.ts'

const [folder = '', command = '', run = '', ...rest] = process.argv.slice(2)
const { store, counter, project, workspaces, memory } = placesIn(folder)
const tell = (line: string) => void writeSync(1, `${line}\n`)
const count = (token: string) => appendFileSync(counter, `${token}\n`)

await using opened = await openStore(store, { secrets: {}, durability: 'normal' })
await using runtime = createRuntime({ store: opened, lease: 600_000, workspaces })
const workflow = () => (run.startsWith('till') ? new Till(tell, count) : new Expedition(tell, count, memory))
try {
  tell('begun')
  const start = Session.fromUserMessage('Set out.').to('local', project)
  if (command === 'run') await runtime.run(workflow(), start, { id: run })
  if (command === 'resume') await runtime.resume(run, workflow())
  if (command === 'decide')
    await runtime.decide(run, rest[0] as string, { verdict: 'approved', by: 'another process' })
  const { output } = await runtime.runs.get(run)
  tell(`end ${command === 'decide' ? 'decided' : (await runtime.sessions.get(output as string)).state}`)
} catch (error) {
  const known = error as RathError
  tell(`error ${JSON.stringify({ code: known.code, data: known.data, message: known.message })}`)
}
