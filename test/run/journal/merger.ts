import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { Agent } from '../../../src/flow/agent.ts'
import { createRuntime } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import { scripted } from '../../../src/testing/scripted.ts'

/**
 * Merges into a folder again and again: each time two branches, one of which adds a file and the other edits a line that is its own. Says so on
 * standard output before each merge and when it has been acknowledged, and what of its work is missing in the folder then.
 */
const [folder = '', kept = '', me = '', from = '0', to = '0'] = process.argv.slice(2)

const writer = (path: string, content: string) =>
  new Agent('Write.', {
    model: scripted([{ toolCalls: [{ name: 'write_workspace_file', args: { path, content } }] }, 'Done.']),
  })

const editor = (line: string, text: string) =>
  new Agent('Edit.', {
    model: scripted([
      { toolCalls: [{ name: 'edit_workspace_file', args: { path: 'lines.txt', old: line, new: text } }] },
      'Done.',
    ]),
  })

function lineOf(name: string): string {
  const lines = readFileSync(`${folder}/lines.txt`, 'utf8').split('\n')
  return lines.find(text => text.startsWith(`${name}:`)) as string
}

for (let i = Number(from); i < Number(to); i++) {
  await using runtime = createRuntime({ store: 'memory:', workspaces: kept })
  const call = (agent: Agent, session: Session) => runtime.run(agent, session)
  const start = Session.fromUserMessage('go').to('local', folder)
  const [left, right] = start.forks(2) as [Session, Session]
  const line = lineOf(me)
  const text = `${me}: ${i} ${randomUUID()}`
  const sides = await Promise.all([
    call(writer(`${me}/${i}/file.txt`, `${me} ${i}\n`), left),
    call(editor(line, text), right),
  ])
  process.stdout.write(`begin ${i}\n`)
  await (sides[0] as Session).merge(sides[1] as Session)
  process.stdout.write(`merged ${i}\n`)
  if (lineOf(me) !== text) process.stdout.write(`lost line ${i}\n`)
  for (let n = Number(from); n <= i; n++) {
    if (!existsSync(`${folder}/${me}/${n}/file.txt`)) process.stdout.write(`lost file ${n} at ${i}\n`)
  }
}
