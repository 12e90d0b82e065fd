// One agent, several places to work: what each backend enforces here, and what a command in it sees.
// Without a key the model is scripted; the rest is real.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, configure, Session } from 'openrath'
import { isolatedBackend, localBackend } from 'openrath/sandbox'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const folder = await mkdtemp(join(tmpdir(), 'openrath-example-'))
const runtime = configure({ store: 'memory:', workspaces: join(folder, 'kept') })
const project = join(folder, 'project')
await mkdir(project)
await writeFile(join(project, 'notes.txt'), 'the project\n')
await writeFile(join(folder, 'diary.txt'), 'not for agents\n')
process.env.SHOP_API_KEY = 'sk-123'

/** What a curious agent tries: the project, a file next to it, a key in the environment. */
const commands = ['cat notes.txt', 'cat ../diary.txt', 'echo "key: $SHOP_API_KEY"']
const task = `Run each of these with run_shell_command, as it stands: ${commands.map(cmd => `\`${cmd}\``).join(', ')}`
const curious = () =>
  new Agent('You do what you are told, and then say in a sentence what you saw.', {
    model: modelOr(
      scripted([
        { toolCalls: commands.map(cmd => ({ name: 'run_shell_command', args: { cmd } })) },
        'I looked.',
      ]),
    ),
    builtins: ['run_shell_command'],
  })

for (const backend of [localBackend(), isolatedBackend()]) {
  const { available, reason } = (await backend.probe?.()) ?? { available: true }
  if (!available) {
    console.log(`${backend.name} is not here: ${reason}`)
    continue
  }
  const { isolation, enforced } = backend.capabilities
  const walls = Object.entries(enforced).flatMap(([name, isEnforced]) => (isEnforced ? name : []))
  console.log(`${backend.name} (isolation: ${isolation}) enforces ${walls.join(', ')}`)

  // The session says where it works; the agent is the same.
  const looked = await curious()(Session.fromUserMessage(task).to(backend.name, project))
  for (const chunk of looked.chunks) {
    if (chunk.kind !== 'tool-result' || chunk.outcome.kind !== 'value') continue
    const { cmd } = chunk.args as { cmd: string }
    const { exitCode, stdout } = chunk.outcome.value as { exitCode: number; stdout: string }
    console.log(`  ${cmd.padEnd(25)} exit ${exitCode}  ${stdout.trim()}`)
  }
}

await runtime.close()
await rm(folder, { recursive: true })
