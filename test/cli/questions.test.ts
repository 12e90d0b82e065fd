import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isolatedBackend } from '../../src/sandbox/drivers/isolated/driver.ts'
import { Project } from './make.ts'

/** Writes two lines, then breaks the second, then adds a third. */
const builder = `import { Agent } from 'openrath'
import { scripted } from 'openrath/testing'
const steps = ['good\\n', 'good\\nfine\\n', 'good\\nbroken\\n', 'good\\nbroken\\nmore\\n']
export default new Agent('Build.', {
  name: 'builder',
  model: scripted((request, n) => {
    const content = steps[n]
    return content === undefined ? 'Built.' : { text: \`step \${n}\`, toolCalls: [{ name: 'write_workspace_file', args: { path: 'out.txt', content } }] }
  }),
})
`

const built = () => {
  const project = new Project({ 'builder.ts': builder, 'work/.keep': '' })
  const { status, stderr } = project.rath('run', 'builder.ts', '--local', 'work', 'build')
  expect(status, stderr).toBe(0)
  return project
}

test('blame names the chunk, agent and model behind each line of a file, and behind a statement', () => {
  const project = built()
  const { stdout, stderr } = project.rath('blame', 'work/out.txt')
  expect(stdout, stderr).toMatch(/^.*builder.* 1 good\n.*builder.* 2 broken\n.*builder.* 3 more\n$/)
  const { lines } = project.json<{ lines: { text: string; producer: { index: number } }[] }>([
    'blame',
    'work/out.txt',
  ])
  expect(new Set(lines.map(({ producer }) => producer.index)).size).toBe(3)
  const one = project.rath('blame', 'work/out.txt:2').stdout
  expect(one).toContain('2 broken')
  expect(one).toContain('Build.')
  expect(project.rath('blame', 'work/out.txt:9').status).toBe(1)
  expect(project.rath('blame', 'last', '2').stdout).toContain('scripted/model')
  expect(project.rath('blame', 'nothing.txt').stderr).toContain('no run has changed nothing.txt')
})

test('bisect finds the first step after which a command fails', () => {
  const project = built()
  const { status, stdout, stderr } = project.rath('bisect', 'last', '--', '! grep -q broken out.txt')
  expect(status, stderr).toBe(0)
  expect(stderr).toMatch(/fail state \d/)
  expect(stdout).toContain('builder')
  const found = project.json<{ result: string; first: { producer: { index: number } } }>([
    'bisect',
    'last',
    '--',
    '! grep -q broken out.txt',
  ])
  expect(found.result).toBe('found')
  const at = found.first.producer.index
  const chunk = project.rath(
    'show',
    project.rath('ls', '-q', '-n', '1').stdout.trim(),
    '--chunk',
    String(at),
    '--json',
  ).stdout
  expect(JSON.parse(chunk)).toMatchObject({ kind: 'tool-result', args: { content: 'good\nbroken\n' } })
})

test('the command of a bisect gets no key of yours, and isolated it sees nothing of yours', async () => {
  const project = built()
  const bisect = (command: string, ...options: string[]) =>
    project.run({ args: ['bisect', 'last', ...options, '--', command], env: { SHOP_API_KEY: 'sk-of-mine' } })
  const local = bisect('test -z "$SHOP_API_KEY"')
  expect(local.stderr).toContain('The command runs local: on this machine as you, without your keys.')
  expect(local.stdout).toContain('passes')
  expect(bisect('test -e out.txt', '--local', '--isolated').status).toBe(2)
  const { available } = (await isolatedBackend().probe?.()) ?? { available: false }
  if (!available) return console.warn('Nothing can be isolated here: that a bisect is was not tested.')
  const outside = join(project.home, 'secret.txt')
  writeFileSync(outside, 'mine')
  expect(bisect(`test -e ${outside}`).stdout).toContain('passes')
  const isolated = bisect(`! test -e ${outside}`, '--isolated')
  expect(isolated.stderr).toContain('The command runs isolated')
  expect(isolated.stdout, isolated.stderr).toContain('passes')
})

test('Ctrl-C ends a bisect, and leaves no folder of it', () => {
  const project = built()
  const scratch = join(project.folder, 'scratch')
  mkdirSync(scratch)
  const { status, screen } = project.terminal(
    ['bisect', 'last', '--', 'touch begun; sleep 600'],
    [['checking', '^C']],
    { TMPDIR: scratch },
  )
  expect(status, screen).toBe(1)
  expect(screen).toContain('cancelled')
  expect(readdirSync(scratch)).toEqual([])
})

test('memory lists, finds, reads and forgets what agents remember', () => {
  const project = new Project({
    'remember.ts': `import { Agent, createRuntime } from 'openrath'
const agent = new Agent('x', { model: { id: 'none', answer: () => Promise.reject(new Error('not asked')) }, memory: 'local' })
await agent.remember('The user likes compact summaries.')
await agent.remember('The door is teal.', { category: 'fact\\u001b[2J' })
`,
  })
  const { status, stderr } = project.program(process.execPath, 'remember.ts')
  expect(status, stderr).toBe(0)
  const { entries } = project.json<{ entries: { id: string; text: string }[] }>(['memory', 'list'])
  expect(entries.map(({ text }) => text)).toEqual(['The door is teal.', 'The user likes compact summaries.'])
  const { hits } = project.json<{ hits: { id: string; text: string }[] }>([
    'memory',
    'find',
    'compact',
    'summaries',
  ])
  expect(hits[0]?.text).toBe('The user likes compact summaries.')
  const id = entries[0]?.id as string
  expect(project.rath('memory', 'read', id).stdout).toContain('The door is teal.')
  expect(project.rath('memory', 'tree').stdout).toContain('2 entries')
  // A model may have named the category.
  expect(project.rath('memory', 'list').stdout).not.toContain('\u001b')
  expect(project.rath('memory', 'forget', id).stdout).toBe('1 entry forgotten.\n')
  expect(project.rath('memory', 'read', id)).toMatchObject({ status: 1, stdout: '' })
  expect(project.rath('memory', 'list').stdout).not.toContain('teal')
})
