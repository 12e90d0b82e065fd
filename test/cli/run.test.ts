import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { entry, greeter, Project, visible } from './make.ts'

interface Result {
  readonly run: string
  readonly status: string
  readonly session: string
  readonly text: string
  readonly error?: {
    readonly code: string
    readonly message: string
    readonly data: { approvals?: { approval: string; until?: number }[] }
  }
}

const greeting = () => new Project({ 'greeter.ts': greeter })

test('a run prints its answer, says what happens on the way, and is recorded with the place of its code', () => {
  const project = greeting()
  const { status, stdout, stderr } = project.rath('run', 'greeter.ts', 'good', 'morning')
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'Hello.\n' })
  expect(stderr).toMatch(/^session [\w-]{36}, \d+ tokens\n$/)
  expect(project.rath('run', 'greeter.ts', '-q', 'again').stderr).toBe('')
  const { runs } = project.json<{ runs: { data: object; status: string }[] }>(['ls', 'runs'])
  expect(runs).toHaveLength(2)
  expect(runs[0]).toMatchObject({
    status: 'done',
    data: { workflow: 'greeter', module: { file: `${project.folder}/greeter.ts`, export: 'default' } },
  })
})

test('a class is made, an export is chosen by name, and input comes from standard input', () => {
  const project = greeting()
  const { status, stdout } = project.run({
    args: ['run', 'greeter.ts', '--export', 'Greeter', '--json', '-'],
    input: 'hi',
  })
  expect(status).toBe(0)
  const { session, text } = JSON.parse(stdout) as Result
  expect(text).toBe('Hello.')
  expect(project.json<{ chunks: { by?: string }[] }>(['show', session]).chunks[1]?.by).toBe('Greeter/agent')
})

test('--model answers for agents that name none, where the environment has none either', () => {
  const project = new Project({
    'any.ts': `import { Agent } from 'openrath'\nexport default new Agent('Answer.', { builtins: false })\n`,
    'm.ts': `import { scripted } from 'openrath/testing'\nexport default scripted(['From the file.'])\n`,
  })
  expect(project.rath('run', 'any.ts', '--model', './m.ts', 'hi')).toMatchObject({
    status: 0,
    stdout: 'From the file.\n',
  })
  const { status, stderr } = project.rath('run', 'any.ts', 'hi')
  expect(status).toBe(1)
  expect(stderr).toContain('No model was named.')
})

test('a run that waits is resumed and replayed with the model that --model named, from any folder', () => {
  const project = new Project({
    'any.ts': `import { Agent, tool } from 'openrath'
const send = tool({ name: 'send', description: '', input: { type: 'object' }, approval: true, run: () => 'sent' })
export default new Agent('Send.', { tools: [send], builtins: false })
`,
    'm.ts': `import { scripted } from 'openrath/testing'
export default scripted([{ toolCalls: [{ name: 'send' }] }, 'From the file.'])
`,
    'elsewhere/notes.md': '',
  })
  const store = `sqlite:${project.folder}/.openrath/rath.db`
  expect(project.rath('run', 'any.ts', '--model', './m.ts', 'hi').status).toBe(3)
  expect(project.rath('approve', 'last', '--yes').status).toBe(0)
  expect(project.run({ args: ['resume', 'last', '--store', store], cwd: 'elsewhere' })).toMatchObject({
    status: 0,
    stdout: 'From the file.\n',
  })
  expect(project.rath('replay', 'last')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('same'),
  })
})

test('a file that is not there, or exports no workflow, is said in one line', () => {
  const project = greeting()
  expect(project.rath('run', 'nothing.ts')).toMatchObject({ status: 2, stdout: '' })
  const { status, stderr } = project.rath('run', 'greeter.ts', '--export', 'number')
  expect(status).toBe(2)
  expect(stderr).toBe(
    'rath: greeter.ts exports no Workflow or Agent as "number", but 7; it exports Greeter, default: choose one with --export NAME.\n',
  )
})

test('a file that uses another installation of openrath is told so', () => {
  const project = new Project({
    'other/agent.ts':
      "import { Agent } from 'openrath'\nexport default new Agent('', { model: { id: 'x', answer: () => {} } })\n",
    'other/node_modules/openrath/package.json':
      '{ "name": "openrath", "type": "module", "exports": { ".": "./index.js", "./package.json": "./package.json" } }',
    'other/node_modules/openrath/index.js': 'export class Agent {}\n',
  })
  const { status, stderr } = project.rath('run', 'other/agent.ts')
  expect(status).toBe(2)
  expect(stderr).toContain(`uses openrath in ${project.folder}/other/node_modules/openrath`)
  expect(stderr).toContain('npx rath')
})

test('a run that parks exits 3 and lists what it asks; a decision and a resume finish it', () => {
  const project = greeting()
  const parked = project.rath('run', 'greeter.ts', 'send it')
  expect(parked.status).toBe(3)
  expect(parked.stdout).toBe('')
  const [, line] = /^ {2}(rath approve \S+ \w+ --yes)/m.exec(parked.stderr) ?? []
  expect(parked.stderr).toContain('send asks for approval.')
  expect(parked.stderr).toContain('    to: "Ada"\n')

  const listed = project.rath('approve')
  expect(listed.status).toBe(0)
  expect(listed.stdout).toContain('send asks for approval.')
  expect(project.rath('approve', 'last').status).toBe(3)
  expect(project.rath('approve', 'last', '--yes', '--no').status).toBe(2)
  const again = project.rath('resume', 'last')
  expect(again.status).toBe(3)

  expect(project.rath(...(line as string).split(' ').slice(1), '--by', 'Grace').status).toBe(0)
  const resumed = project.rath('resume', 'last')
  expect(resumed.status, resumed.stderr).toBe(0)
  expect(resumed.stdout).toBe('The tool said {"kind":"value","value":"sent to Ada"}.\n')
  expect(project.rath('show', project.rath('ls', '-q', '-n', '1').stdout.trim(), '-f').stdout).toContain(
    'approved',
  )
  expect(project.rath('approve').stderr).toBe('Nothing waits for a decision.\n')
  expect(project.rath('approve', 'last', '--yes').status).toBe(2)
})

test('a decision can change the arguments, refuse, or answer, and go on at once', () => {
  const project = greeting()
  const decide = (...how: string[]) => {
    expect(project.rath('run', 'greeter.ts', 'send it').status).toBe(3)
    return project.rath('approve', 'last', ...how, '--resume').stdout
  }
  expect(decide('--edit', '{"to":"Grace"}')).toContain('sent to Grace')
  expect(decide('--no', '--reason', 'Not today.')).toContain('Not today.')
  expect(decide('--answer', '"lost"')).toContain('"value":"lost"')
})

test('an edit that does not fit is refused, the question stays open, and the resume shows what runs', () => {
  const project = greeting()
  expect(project.rath('run', 'greeter.ts', 'send it').status).toBe(3)
  const refused = project.rath('approve', 'last', '--edit', '{"to":7}')
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(refused.stderr).toContain('The edit does not fit send, and nothing was decided')
  expect(refused.stderr).toContain('edit.to')
  expect(project.rath('approve', 'last').status).toBe(3)
  const resumed = project.rath('approve', 'last', '--edit', '{"to":"Grace"}', '--resume')
  expect(resumed.stderr).toContain('→ send {"to":"Grace"}')
  expect(resumed.stderr).not.toContain('Ada')
})

test('a question whose time is over is not listed as open, and the run goes on without an answer', async () => {
  const project = new Project({
    'late.ts': `import { Agent, tool } from 'openrath'
import { scripted } from 'openrath/testing'
const send = tool({ name: 'send', description: 'Sends.', input: { type: 'object' }, approval: true, run: () => 'sent' })
export default new Agent('Send.', { tools: [send], builtins: false, approveWithin: 5000,
  model: scripted(({ messages }) => messages.at(-1)?.role === 'tool' ? 'Not sent.' : { toolCalls: [{ name: 'send' }] }) })
`,
  })
  const [asked] = project.json<Result>(['run', 'late.ts', 'go'], 3).error?.data.approvals ?? []
  while (Date.now() <= (asked?.until as number)) await new Promise(resolve => setImmediate(resolve))
  const listed = project.rath('approve', 'last')
  expect(listed.status).toBe(0)
  expect(listed.stdout).toContain('Nobody decided before')
  expect(project.json<{ waiting: { approvals: unknown[] }[] }>(['approve']).waiting[0]?.approvals).toEqual([])
  const late = project.rath('approve', 'last', '--yes')
  expect(late.status).toBe(2)
  expect(late.stderr).toContain('nobody decided in time; the run goes on without an answer: rath resume')
  expect(project.rath('resume', 'last').stdout).toBe('Not sent.\n')
})

test('a run that was stopped before it was done prints no older answer, says why and how to go on, and exits 1', () => {
  const project = new Project({
    'cut.ts': `import { Agent, tool } from 'openrath'
import { scripted } from 'openrath/testing'
const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, effect: 'read', run: () => 'closed' })
export default new Agent('Look.', { tools: [look], builtins: false, maxRounds: 1, model: scripted(['Hello.', { toolCalls: [{ name: 'look' }] }, 'Closed.']) })
`,
  })
  const hello = project.json<Result>(['run', 'cut.ts', 'hi'])
  const cut = project.rath('run', 'cut.ts', '--from', hello.session, 'And the door?')
  expect(cut).toMatchObject({ status: 1, stdout: '' })
  expect(cut.stderr).toContain(
    'stopped before it was done: max-rounds: The agent was stopped after 1 round with',
  )
  const [, session] = /rath run FILE --from (\S+)/.exec(cut.stderr) ?? []
  expect(project.json<Result>(['run', 'cut.ts', '--from', session as string])).toMatchObject({
    text: 'Closed.',
  })
})

test('with --json every end of a run is one document', () => {
  const project = greeting()
  const parked = project.json<Result>(['run', 'greeter.ts', 'send it'], 3)
  expect(parked).toMatchObject({ status: 'waiting', error: { code: 'run-waiting' } })
  expect(parked.error?.data.approvals).toHaveLength(1)
  const failed = project.json<Result>(['run', 'greeter.ts', 'fail'], 1)
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'model-unauthorized' } })
  expect(project.json<Result>(['run', 'greeter.ts', 'hi'])).toMatchObject({ status: 'done', text: 'Hello.' })
})

test('a run that fails exits 1 and says how to go on', () => {
  const project = greeting()
  const { status, stdout, stderr } = project.rath('run', 'greeter.ts', 'fail')
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(/rath: failed: .*\nGo on where it stood: rath resume [\w-]{36}\n$/s)
})

test('Ctrl-C cancels a run, and it can be resumed', async () => {
  const project = greeting()
  const child = spawn(process.execPath, [entry, 'run', 'greeter.ts', 'send and wait'], {
    cwd: project.folder,
    env: project.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', data => {
    stderr += data
  })
  // The run is under way when its first effect is on record.
  while (!/"running"/.test(project.rath('ls', 'runs', '--json').stdout)) {}
  child.kill('SIGINT')
  const [status] = await once(child, 'close')
  expect(status).toBe(1)
  expect(stderr).toContain('Cancelling')
  expect(stderr).toMatch(/rath: cancelled\nGo on where it stood: rath resume [\w-]{36}\n$/)
  expect(project.json<{ runs: { status: string }[] }>(['ls', 'runs']).runs[0]?.status).toBe('cancelled')
  project.write(
    'quick.ts',
    "import { scripted } from 'openrath/testing'\nexport default scripted(['Now.'])\n",
  )
  expect(project.rath('resume', 'last', '-m', 'quick.ts').stdout).toBe('Now.\n')
})

test('what was cut off in the middle waits for somebody who knows whether it happened', async () => {
  const project = new Project({
    'cut.ts': `import { Agent, tool } from 'openrath'
import { scripted } from 'openrath/testing'
const send = tool({ name: 'send', description: 'Sends.', input: { type: 'object' }, effect: 'external', run: () => new Promise(() => setInterval(() => {}, 1000)) })
export default new Agent('Send.', {
  tools: [send],
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool' ? \`It gave \${JSON.stringify(last.outcome)}.\` : { toolCalls: [{ name: 'send' }] }
  }),
})
`,
  })
  const child = spawn(process.execPath, [entry, 'run', 'cut.ts', 'go'], {
    cwd: project.folder,
    env: project.env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  for await (const data of child.stderr) if (String(data).includes('→ send')) break
  while (!/tool effect/.test(project.rath('show', 'last').stdout)) {}
  child.kill('SIGKILL')
  await once(child, 'close')
  const resumed = project.rath('resume', 'last')
  expect(resumed.status).toBe(3)
  expect(resumed.stderr).toContain('--happened, or --did-not-happen')
  expect(resumed.stderr).toMatch(/\n +send\n +without arguments\n/)
  expect(project.rath('approve').stdout).toMatch(/happen\?\n +send\n +without arguments\n/)
  const settled = project.rath('approve', 'last', '--happened', '--result', '"a receipt"', '--resume')
  expect(settled.status, settled.stderr).toBe(0)
  expect(settled.stdout).toContain('a receipt')
})

test('what may be on record under another name is shown beside it, and a person says which it is', () => {
  const program = (prompt: string, last: string) => `import { appendFileSync } from 'node:fs'
import { Agent, Sequential, tool } from 'openrath'
import { scripted } from 'openrath/testing'
const send = tool({ name: 'send', description: 'Sends.', input: { type: 'object' }, effect: 'external', run: () => (appendFileSync('sent.txt', 'x'), 'a receipt') })
const sender = new Agent('${prompt}', {
  name: 'sender',
  tools: [send],
  model: scripted(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'Sent.' : { text: '${prompt}', toolCalls: [{ name: 'send' }] })),
})
export default new Sequential(sender, new Agent('Sum up.', { name: 'last', model: scripted(() => (${last})) }))
`
  const project = new Project({ 'send.ts': program('Send.', '{ error: { status: 400 } }') })
  expect(project.rath('run', 'send.ts', 'go').status).toBe(1)
  project.write('send.ts', program('Send it.', "'Done.'"))
  const resumed = project.rath('resume', 'last')
  expect(resumed.status, resumed.stderr).toBe(3)
  expect(resumed.stderr).toContain('is about to be done, and is not on record')
  const [, same] = /--same (\S+), or/.exec(resumed.stderr) ?? []
  expect(project.rath('approve', 'last').stdout).toMatch(/ended with .*a receipt/)
  const settled = project.rath('approve', 'last', '--same', same ?? '', '--resume')
  expect(settled.status, settled.stderr).toBe(0)
  expect(settled.stdout).toContain('Done.')
  expect(project.read('sent.txt')).toBe('x')
})

test('a run that was begun with a policy is not resumed without it', () => {
  const project = new Project({
    'agent.ts': `import { Agent } from 'openrath'
import { scripted } from 'openrath/testing'
export default new Agent('Send.', { model: scripted(() => ({ error: { status: 400 } })) })
`,
    'begin.ts': `import { configure, Session } from 'openrath'
import { policy } from 'openrath/policy'
import agent from './agent.ts'
const runtime = configure({})
const options = { policy: policy({ deny: ['*'] }), module: { file: 'agent.ts' } }
await runtime.run(agent, Session.fromUserMessage('go'), options).catch(() => {})
await runtime.close()
`,
  })
  const { folder: cwd, env } = project
  expect(spawnSync(process.execPath, ['begin.ts'], { cwd, env }).status).toBe(0)
  const { status, stderr } = project.rath('resume', 'last')
  expect(status).toBe(1)
  expect(stderr).toContain('was begun with a policy')
})

test('on a terminal a spinner shows time and tokens, and --ask asks there', () => {
  const project = greeting()
  const { status, screen } = project.terminal(
    ['run', 'greeter.ts', '--ask', 'send it'],
    [
      ['token', ''],
      ['why: ', 'y\r'],
    ],
  )
  expect(status).toBe(0)
  expect(visible(screen)).toMatch(/⠋|⠙|⠹|⠸/)
  expect(visible(screen)).toMatch(/\d+ (ms|s), \d+ tokens?/)
  expect(visible(screen)).toContain('sent to Ada')
})

test('a replay says whether the code still does what was recorded, without asking a model', () => {
  const project = greeting()
  project.rath('run', 'greeter.ts', 'hi')
  const same = project.rath('replay', 'last')
  expect(same.status, same.stderr).toBe(0)
  expect(same.stdout).toContain('same: run ')
  project.write('greeter.ts', greeter.replaceAll("new Agent('Greet.'", "new Agent('Greet loudly.'"))
  const other = project.rath('replay', 'last')
  expect(other.status).toBe(1)
  expect(other.stdout).toContain('different: run ')
  expect(other.stdout).toContain('Greet loudly.')
  expect(project.json<{ ok: boolean }>(['replay', 'last'], 1).ok).toBe(false)
})

test('tools work in the folder of --local, a model can come from a file, and a session can be gone on from', () => {
  const project = new Project({
    'writer.ts':
      "import { Agent } from 'openrath'\nexport default new Agent('Write.', { model: 'openai/none', name: 'writer' })\n",
    'model.ts': `import { scripted } from 'openrath/testing'
export default scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return 'Written.'
  return { toolCalls: [{ name: 'write_workspace_file', args: { path: 'a.txt', content: String(messages.length) } }] }
})
`,
    'work/.keep': '',
  })
  const { status, stderr } = project.rath(
    'run',
    'writer.ts',
    '-m',
    'model.ts',
    '--local',
    'work',
    '--tag',
    'written',
    'write',
  )
  expect(status, stderr).toBe(0)
  expect(project.read('work/a.txt')).toBe('2')
  expect(project.rath('run', 'writer.ts', '-m', 'model.ts', '--from', 'written', 'once more').status).toBe(0)
  expect(project.read('work/a.txt')).toBe('6')
  expect(project.rath('run', 'writer.ts', '--local', '.', '--isolated', '.', 'x').status).toBe(2)
})
