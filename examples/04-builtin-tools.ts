// The built-in tools: an agent reads, edits and runs a real program in a folder. Without a key the model is scripted; the rest is real.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, configure, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const runtime = configure({ store: 'memory:' })
const folder = await mkdtemp(join(tmpdir(), 'openrath-example-'))
await writeFile(join(folder, 'add.js'), 'console.log(2 - 2)\n')

const script = scripted([
  {
    toolCalls: [
      { name: 'list_workspace_files' },
      { name: 'run_shell_command', args: { cmd: 'node add.js' } },
    ],
  },
  { toolCalls: [{ name: 'search_workspace', args: { query: '2 - 2' } }] },
  {
    toolCalls: [
      { name: 'edit_workspace_file', args: { path: 'add.js', old: '2 - 2', new: '2 + 2' } },
      // In the same turn, and yet it sees the edit: a command waits for everything asked before it.
      { name: 'run_shell_command', args: { cmd: 'node add.js' } },
    ],
  },
  'It subtracted. It adds now, and prints 4.',
])

// All built-in tools are there by default; this agent gets four of them.
const mender = new Agent(
  'You mend programs: run them, search for what is wrong, edit it, and run them again.',
  {
    model: modelOr(script),
    builtins: ['list_workspace_files', 'search_workspace', 'edit_workspace_file', 'run_shell_command'],
  },
)

// `to` says where the tools work. Nothing is opened until a tool asks for it.
const session = Session.fromUserMessage('`node add.js` prints 0 and should print 4. Mend it.').to(
  'local',
  folder,
)
const mended = await mender(session)

for (const chunk of mended.chunks) {
  if (chunk.kind === 'tool-result') console.log(`${chunk.tool}: ${chunk.text}`)
}
console.log(`answer: ${mended.text}`)
console.log(`file: ${(await readFile(join(folder, 'add.js'), 'utf8')).trim()}`)

// A path that leads out of the folder is a failure the model reads, and the run goes on.
const curious = new Agent('You look around.', {
  model: modelOr(
    scripted([
      { toolCalls: [{ name: 'read_workspace_file', args: { path: '../secret.txt' } }] },
      'I may not.',
    ]),
  ),
  builtins: ['read_workspace_file'],
})
const tried = await curious(session.user('Now read ../secret.txt and tell me what happens.'))
for (const chunk of tried.chunks) {
  if (chunk.kind === 'tool-result') console.log(`refused: ${chunk.text.replace(folder, '…')}`)
}

await runtime.close()
await rm(folder, { recursive: true })
