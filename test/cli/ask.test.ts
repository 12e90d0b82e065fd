import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { entry, Project, visible } from './make.ts'

/** A tool that pays, whose arguments are called like those of others; a command; a long file. */
const agents = `import { Agent, tool } from 'openrath'
import { policy } from 'openrath/policy'
import { scripted } from 'openrath/testing'
const transfer = tool({ name: 'transfer_money', description: 'Pays.', approval: true, input: { type: 'object' }, run: () => 'paid' })
const call = (name, args) => scripted((_, n) => (n === 0 ? { toolCalls: [{ name, args }] } : 'Done.'))
const rules = policy({ approval: [{ tool: '*', reason: 'May I?' }] })
export const pay = new Agent('Pay.', {
  name: 'pay', tools: [transfer], builtins: false,
  model: call('transfer_money', { to: 'attacker', amount: 99999, cmd: 'git status' }),
})
export const touch = new Agent('Work.', { name: 'touch', policy: rules, model: call('run_shell_command', { cmd: 'touch done' }) })
export const long = new Agent('Work.', {
  name: 'long', policy: rules, model: call('run_shell_command', { cmd: 'touch done\\n' + 'echo x\\n'.repeat(100) + 'echo \\u202eend' }),
})
`

const run = (name: string, ...more: string[]) => [
  'run',
  'agents.ts',
  '-e',
  name,
  '--ask',
  '--local',
  '.',
  ...more,
  'go',
]

test('a call is shown with its tool and all of its arguments: on the terminal, when a run parks, in the list, and when it is decided', () => {
  const project = new Project({ 'agents.ts': agents })
  const whole = /transfer_money\n +amount: 99999\n +cmd: "git status"\n +to: "attacker"\n/
  const { screen } = project.terminal(run('pay'), [['why: ', 'n\r']])
  expect(visible(screen)).toMatch(whole)
  const parked = project.rath('run', 'agents.ts', '-e', 'pay', 'go')
  expect(parked.stderr).toMatch(whole)
  expect(project.rath('approve').stdout).toMatch(whole)
  expect(project.rath('approve', 'last', '--no').stderr).toMatch(whole)
})

test('what has left the screen, and what cannot be seen, is named above the question', () => {
  const project = new Project({ 'agents.ts': agents })
  const { screen } = project.terminal(run('long'), [['why: ', 'n\r']])
  expect(visible(screen)).toContain('echo <U+202E>end')
  expect(visible(screen)).toMatch(
    /↑ \d+ lines of this call to run_shell_command are above the screen \(cmd 102 lines, \d+ characters\)[^\n]*\nAllow it\?/,
  )
  expect(existsSync(join(project.folder, 'done'))).toBe(false)
})

for (const [what, typed] of [
  ['a line', 'y\r'],
  ['many lines', 'y\r'.repeat(50)],
  ['the beginning of a line', 'y'],
] as const) {
  test(`${what} typed before the first question does not answer it`, () => {
    const project = new Project({ 'agents.ts': agents })
    const { screen } = project.terminal(run('touch'), [
      ['', typed],
      ['why: ', '\r'],
      ['y to allow it', ''],
      ['why: ', 'n not now\r'],
    ])
    expect(visible(screen)).toContain('touch done')
    expect(existsSync(join(project.folder, 'done'))).toBe(false)
  })
}

test('an answer behind the question is taken, and Ctrl-C is heard before and while it is asked', () => {
  const project = new Project({ 'agents.ts': agents })
  const { status } = project.terminal(run('touch'), [['why: ', 'y\r']])
  expect(status).toBe(0)
  expect(existsSync(join(project.folder, 'done'))).toBe(true)
  const { screen, status: cancelled } = project.terminal(run('touch'), [['why: ', '^C']])
  expect(cancelled).toBe(1)
  expect(visible(screen)).toContain('cancelled')
})

test('what is piped in answers nothing: without a terminal --ask is refused before anything runs', async () => {
  const project = new Project({ 'agents.ts': agents })
  // In a session of its own it has no terminal, though whoever runs the tests may have one.
  const child = spawn('sh', ['-c', 'yes y | "$@"', 'sh', process.execPath, entry, ...run('touch')], {
    cwd: project.folder,
    env: project.env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', piece => {
    said += piece
  })
  await new Promise(resolve => child.on('close', resolve))
  expect(said).toContain('--ask shows calls and reads answers on a terminal, and there is none here')
  expect(existsSync(join(project.folder, 'done'))).toBe(false)
})

test('with something piped in, and the output going elsewhere, the question is shown and answered on the terminal', () => {
  const project = new Project({ 'agents.ts': agents })
  project.write('ask.sh', `yes y | "$@" > out.txt`)
  const { screen } = project.onTerminal(
    ['/bin/sh', 'ask.sh', process.execPath, entry, ...run('touch')],
    [['why: ', 'n no\r']],
  )
  expect(visible(screen)).toContain('$ touch done')
  expect(project.read('out.txt')).toBe('Done.\n')
  expect(existsSync(join(project.folder, 'done'))).toBe(false)
})

test('a conversation that is piped in approves nothing', () => {
  const model = `import { scripted } from 'openrath/testing'
export default scripted(({ messages }) => messages.at(-1)?.role === 'tool' ? JSON.stringify(messages.at(-1).outcome) : { toolCalls: [{ name: 'run_shell_command', args: { cmd: 'touch done' } }] })
`
  const project = new Project({ 'model.ts': model })
  const { stdout } = project.run({
    args: ['chat', '--local', '-m', 'model.ts'],
    input: 'touch it\ny\ny\ny\n',
  })
  expect(stdout).toContain('approvals are read from a terminal only')
  expect(existsSync(join(project.folder, 'done'))).toBe(false)
})

test('an edit that does not fit the tool is asked for again', () => {
  const project = new Project({
    'agents.ts': `import { Agent, tool } from 'openrath'
import { scripted } from 'openrath/testing'
const input = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] }
const pay = tool({ name: 'pay', description: 'Pays.', approval: true, input, run: ({ amount }) => 'paid ' + amount })
export const fits = new Agent('Pay.', {
  name: 'fits', tools: [pay], builtins: false,
  model: scripted([{ toolCalls: [{ name: 'pay', args: { amount: 50 } }] }, 'Done.']),
})
`,
  })
  const { screen, status } = project.terminal(run('fits'), [
    ['why: ', 'e\r'],
    ['arguments: ', '\u0015{"amount":"five"}\r'],
    ['That does not fit pay: arguments.amount', ''],
    ['why: ', 'e\r'],
    ['arguments: ', '\u0015{"amount":5}\r'],
  ])
  expect(status).toBe(0)
  expect(visible(screen)).toContain('→ pay {"amount":5}')
})
