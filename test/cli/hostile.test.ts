import { spawn } from 'node:child_process'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { aRun, forge } from '../evidence/forge.ts'
import { entry, Project } from './make.ts'

const acts = /[^\P{Cc}\n]/u

/** A store with names that somebody else has chosen. */
function hostile(name: string): Project {
  const project = new Project()
  const run = { ...aRun, id: `run-${name}`, data: { workflow: name, module: { file: name } } }
  project.write('hostile.jsonl', forge({ sessions: [{ id: name }], runs: [{ run }] }))
  const { status, stdout, stderr } = project.rath('import', 'hostile.jsonl')
  expect(status, stderr).toBe(0)
  expect(stdout).not.toMatch(acts)
  return project
}

test('names that came with a file of somebody else do nothing to a terminal', () => {
  const project = hostile('\u001b]0;title\u0007\u009b31m\u007f')
  const lines = [['ls'], ['ls', '-q'], ['ls', 'runs'], ['show', 'last'], ['graph', '--format', 'mermaid']]
  for (const line of [...lines, ['ls', '--json'], ['show', 'last', '--json'], ['resume', 'last']]) {
    const { stdout, stderr } = project.rath(...line)
    expect(stdout + stderr, line.join(' ')).not.toBe('')
    expect(stdout + stderr, line.join(' ')).not.toMatch(acts)
  }
  const { sessions } = project.json<{ sessions: { id: string }[] }>(['ls'])
  expect(sessions[0]?.id).toBe('\u001b]0;title\u0007\u009b31m\u007f')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is looked for.
  expect(project.terminal(['ls', 'runs'], []).screen).not.toMatch(/\u001b|\u009b/)
})

test('completing a name runs nothing of what a name says', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell.
  const project = hostile('$(touch${IFS}pwned)`touch${IFS}pwned`')
  project.write('more.jsonl', forge({ sessions: [{ id: 'harmless-1' }] }))
  project.rath('import', 'more.jsonl')
  project.write('completion.bash', project.rath('completion', 'bash').stdout)
  project.write(
    'try.bash',
    `rath() { '${process.execPath}' '${entry}' "$@"; }
. ./completion.bash
for command in show resume; do COMP_WORDS=(rath $command ""); COMP_CWORD=2; _rath; echo "\${COMPREPLY[@]}"; done`,
  )
  const { stdout } = project.program('bash', 'try.bash')
  expect(existsSync(join(project.folder, 'pwned'))).toBe(false)
  expect(stdout.trim()).toBe('harmless-1')
})

const slow = `import { Agent, tool } from 'openrath'
import { scripted } from 'openrath/testing'
const wait = tool({ name: 'wait', description: 'Waits.', effect: 'pure', input: { type: 'object' }, run: () => 1 })
export default new Agent('Wait.', {
  tools: [wait],
  model: scripted((_, n) => (n < 5 ? { text: 'Not yet.', toolCalls: [{ name: 'wait' }] } : 'Done.')),
})
`

test('a run whose progress nobody reads any more goes on to its end', async () => {
  const project = new Project({ 'slow.ts': slow })
  const child = spawn(process.execPath, [entry, 'run', 'slow.ts', 'go'], {
    cwd: project.folder,
    env: project.env,
  })
  child.stderr.destroy()
  let said = ''
  child.stdout.on('data', piece => {
    said += piece
  })
  const code = await new Promise(resolve => child.on('close', resolve))
  expect({ code, said }).toEqual({ code: 0, said: 'Done.\n' })
})

/** Asks for a command of three lines, then for another. */
const sly = `import { Agent } from 'openrath'
import { policy } from 'openrath/policy'
import { scripted } from 'openrath/testing'
const commands = ['echo one\\ny\\ny', 'touch second']
export default new Agent('Work.', {
  name: 'sly',
  policy: policy({ approval: [{ tool: ['run_shell_command'], reason: 'May I?' }] }),
  model: scripted((_, n) => (commands[n] ? { toolCalls: [{ name: 'run_shell_command', args: { cmd: commands[n] } }] } : 'Done.')),
})
`

test('a command of several lines that a person wants to edit is not sent off by its own line breaks, and answers nothing', () => {
  const project = new Project({ 'sly.ts': sly })
  const { screen } = project.terminal(
    ['run', 'sly.ts', '--ask', '--local', '.', 'go'],
    [
      ['why: ', 'e\r'],
      ['arguments: ', ''],
      ['"}', '\r'],
      ['touch second', ''],
      ['why: ', 'n\r'],
    ],
  )
  expect(screen).toContain('{"cmd":"echo one\\ny\\ny"}')
  expect(existsSync(join(project.folder, 'second'))).toBe(false)
})

test('what was typed before a question was shown does not answer it', () => {
  const project = new Project({ 'sly.ts': sly })
  project.terminal(
    ['run', 'sly.ts', '--ask', '--local', '.', 'go'],
    [
      ['why: ', 'y\ry\r'],
      ['touch second', ''],
      ['why: ', 'n\r'],
    ],
  )
  expect(existsSync(join(project.folder, 'second'))).toBe(false)
})

test('a session is verified though a folder is called like it, and a key is not passed over, since only files are signed', () => {
  const project = hostile('kept-1')
  project.write('kept-1/file', 'a folder that is called like the session')
  expect(project.rath('verify', 'kept-1')).toMatchObject({ status: 0 })
  const { status, stderr } = project.rath('verify', 'kept-1', '--key', 'ada.pub.pem')
  expect(status).toBe(2)
  expect(stderr).toContain('only files are signed')
})

test('with --json a wrong use is told as JSON too, and words behind -- are not options', () => {
  const project = new Project()
  expect(JSON.parse(project.rath('show', '--json').stderr)).toMatchObject({
    error: { message: expect.stringContaining("missing required argument 'name'") },
  })
  expect(project.rath('bisect', 'last', '--', 'npm', 'test', '--json').stderr).toMatch(
    /^rath: there is no store/,
  )
})

test('blame and bisect look for files where --files says', () => {
  const writer = `import { Agent } from 'openrath'
import { scripted } from 'openrath/testing'
const call = { name: 'write_workspace_file', args: { path: 'a.txt', content: 'one\\n' } }
export default new Agent('Write.', { name: 'writer', model: scripted([{ toolCalls: [call] }, 'Written.']) })
`
  const project = new Project({ 'writer.ts': writer, 'work/.keep': '' })
  expect(project.rath('run', 'writer.ts', '--local', 'work', 'go').status).toBe(0)
  renameSync(join(project.home, 'workspaces'), join(project.folder, 'elsewhere'))
  // The store has them too.
  expect(project.rath('blame', 'work/a.txt').stdout).toMatch(/writer.* 1 one\n$/)
  const { stdout, stderr } = project.rath('blame', 'work/a.txt', '--files', 'elsewhere')
  expect(stdout, stderr).toMatch(/writer.* 1 one\n$/)
  const found = project.rath('bisect', 'last', '--files', 'elsewhere', '--', '! test -e a.txt')
  expect(found.stdout, found.stderr).toMatch(/^First fails: .*writer/)
  const lost = project.rath('bisect', 'last', '--files', 'elsewhere', '--', 'no-such-program')
  expect(lost.status).toBe(2)
  expect(lost.stderr).toContain('no-such-program ended with 127, which says nothing about the files')
})

test('a record that came with a folder does not get its code loaded by replay or resume', async () => {
  const project = new Project({
    'agent.ts': slow.replace('n < 5', 'n < 1'),
    'planted.mjs': `import { writeFileSync } from 'node:fs'\nwriteFileSync('pwned', '')\nexport default 1\n`,
  })
  expect(project.rath('run', 'agent.ts', 'go').status).toBe(0)
  // This user's own run is replayed unasked.
  expect(project.rath('replay', 'last').status).toBe(0)
  const { openStore } = await import('../../src/store/open.ts')
  {
    await using store = await openStore(`sqlite:${join(project.folder, '.openrath/rath.db')}`)
    const [run] = await store.runs.list({ limit: 1 })
    const data = {
      ...run?.data,
      module: { ...(run?.data.module as object), file: join(project.folder, 'planted.mjs') },
    }
    await store.runs.create({ id: 'planted-run', input: run?.input ?? '', data })
  }
  for (const command of ['replay', 'resume']) {
    const { status, stderr } = project.rath(command, 'planted-run')
    expect(status, stderr).not.toBe(0)
    expect(stderr).toContain('no run of this user wrote that')
    expect(stderr).toContain('--file')
  }
  expect(existsSync(join(project.folder, 'pwned'))).toBe(false)
})
