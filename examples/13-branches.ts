// Two agents change one project at the same time, each in files of its own. Nobody touches the folder until the merge.
// Without a key the models are scripted; the files are real.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, configure, RathError, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const home = await mkdtemp(join(tmpdir(), 'openrath-example-'))
const project = join(home, 'project')
const runtime = configure({ store: 'memory:', workspaces: join(home, 'kept') })
const show = async () => (await readFile(join(project, 'menu.txt'), 'utf8')).trimEnd().replaceAll('\n', ' | ')

/** An agent runs these commands. */
function work(name: string, session: Session, ...commands: string[]) {
  const calls = commands.map(cmd => ({ toolCalls: [{ name: 'run_shell_command', args: { cmd } }] }))
  const agent = new Agent('Run commands with run_shell_command, in order, as they stand. Then say done.', {
    name,
    model: modelOr(scripted([...calls, 'done'])),
    builtins: ['run_shell_command'],
  })
  return agent(session.user(`Run ${commands.map(cmd => `\`${cmd}\``).join(' and ')}`))
}

const menu = Session.fromUserMessage('We write a menu.').to('local', project)
const begun = await work('cook', menu, 'printf "soup\\nfish\\nrice\\ncake\\n" > menu.txt')
console.log(`folder: ${await show()}`)

// A fork has files of its own from here on.
const [spicy, sweet] = begun.forks(['spicy', 'sweet'])
const [left, right] = await Promise.all([
  work(
    'ann',
    spicy,
    'sed -i "s/soup/hot soup/" menu.txt',
    'sed -i "s/fish/curry/" menu.txt; touch chili.txt',
  ),
  work('bob', sweet, 'sed -i "s/fish/pancakes/" menu.txt', 'sed -i "s/cake/big cake/" menu.txt'),
])
console.log(`folder, while both work: ${await show()}`)
for (const { path, change, side } of (await left.diff(right)).files)
  console.log(`  ${side}: ${change} ${path}`)

// Lines that both changed are refused, and nothing is written.
const refused = await left.merge(right).catch((error: unknown) => error)
if (refused instanceof RathError) console.log(`${refused.code}: ${JSON.stringify(refused.data.conflicts)}`)

// A function settles each file: here another agent writes it. Who decided is on the record.
const chef = new Agent('You settle menus: join both into one of four lines. Answer with its text alone.', {
  name: 'chef',
  model: modelOr(scripted(['hot soup\ncurry pancakes\nrice\nbig cake\n'])),
  builtins: false,
})
const merged = await left.merge(right, {
  onConflict: async ({ path, ours, theirs }) => {
    const text = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes ?? new Uint8Array())
    const asked = Session.fromUserMessage(`${path}: one has\n${text(ours)}\nand the other\n${text(theirs)}`)
    return { content: (await chef(asked)).text, by: 'chef' }
  },
})
const record = merged.chunks.findLast(chunk => chunk.kind === 'merge')
console.log(`folder, merged: ${await show()}`)
for (const { path, settled, by } of record?.conflicts ?? []) console.log(`  ${path} ${settled} by ${by}`)

// Back to the first call: what follows is a branch again. `checkout` brings its files to the folder when you want them there.
const first = [...merged.chunks].findIndex(chunk => chunk.kind === 'tool-result')
const other = await work('dan', merged.rewind(first), 'echo tea >> menu.txt')
console.log(`folder, while dan works on the past: ${await show()}`)
await runtime.checkout(other)
console.log(`folder, checked out: ${await show()}`)

await runtime.close()
await rm(home, { recursive: true })
