import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent, createRuntime, Parallel, Session, Workflow } from '../src/index.ts'
import { type Answer, scripted } from '../src/testing/scripted.ts'

/** What the pictures show: one small repair, with two attempts on branches of their own, one of them rejected. Scripted models, real files and tests. */
export async function tellStory(
  folder: string,
): Promise<{ readonly store: string; readonly project: string }> {
  const [store, project] = [`sqlite:${join(folder, 'rath.db')}`, join(folder, 'project')]
  mkdirSync(project)
  writeFileSync(join(project, 'add.mjs'), 'export const add = (a, b) => a - b\n')
  writeFileSync(join(project, 'test.mjs'), test)
  const runtime = createRuntime({ store, workspaces: join(folder, 'workspaces') })
  try {
    await runtime.run(
      new Repair(),
      Session.fromUserMessage('add(2, 3) gives -1. Mend it.').to('local', project),
    )
    return { store, project }
  } finally {
    await runtime.close()
  }
}

const test = `import { add } from './add.mjs'
if (add(2, 3) !== 5) throw new Error(\`add(2, 3) gave \${add(2, 3)}\`)
console.log('1 test passed')
`

class Repair extends Workflow {
  override readonly name = 'Repair'
  reader = agent(
    'You find causes.',
    { toolCalls: [{ name: 'read_workspace_file', args: { path: 'add.mjs' } }] },
    'It subtracts.',
  )
  attempts = new Parallel(
    {
      times: coder('export const add = (a, b) => a * b\n'),
      plus: coder('export const add = (a, b) => a + b\n'),
    },
    { join: sessions => sessions.find(passes) ?? (sessions[0] as Session) },
  )
  reporter = agent('You report in one sentence.', 'add.mjs subtracted; it adds now, and its test passes.')

  override async forward(session: Session): Promise<Session> {
    return this.reporter(this.attempts(this.reader(session)))
  }
}

function coder(content: string): Agent {
  const write = { name: 'write_workspace_file', args: { path: 'add.mjs', content } }
  const run = { name: 'run_shell_command', args: { cmd: 'node test.mjs' } }
  return agent('You mend code and run the test.', { toolCalls: [write, run] }, 'Done; look at the test.')
}

function agent(prompt: string, ...answers: Answer[]): Agent {
  return new Agent(prompt, { model: scripted(answers) })
}

function passes(session: Session): boolean {
  return (
    session.chunks.findLast(chunk => chunk.kind === 'tool-result')?.text.includes('"exitCode":0') === true
  )
}
