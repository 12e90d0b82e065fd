import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sha256 } from '../../src/base/digest.ts'
import { RathError } from '../../src/base/errors.ts'
import { choosePlace } from '../../src/cli/chat/place.ts'
import { isolatedBackend } from '../../src/sandbox/drivers/isolated/driver.ts'
import type { SandboxBackend } from '../../src/sandbox/spec.ts'
import { Session } from '../../src/session/session.ts'
import { Project, visible } from './make.ts'

const model = `import { scripted } from 'openrath/testing'

export default scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return last.outcome.kind === 'value' ? 'It is done.' : \`It was refused: \${JSON.stringify(last.outcome)}\`
  const said = JSON.stringify(last?.content)
  if (said.includes('wait')) return { deltas: ['I begin', ' and wait'], delayMs: 0, toolCalls: [{ name: 'run_shell_command', args: { cmd: 'sleep 600' } }] }
  if (said.includes('think')) return { text: 'late', delayMs: 600_000 }
  if (said.includes('write')) return { text: 'A file, then.', toolCalls: [{ name: 'write_workspace_file', args: { path: 'note.txt', content: 'new\\n' } }] }
  if (said.includes('count')) return \`You have said \${messages.filter(({ role }) => role === 'user').length} things.\`
  return { deltas: ['Hel', 'lo.'] }
})
`

const chat = (...args: string[]) => ['chat', '-m', 'model.ts', ...args]

test('a chat streams answers, is kept, and goes on where it was left', () => {
  const project = new Project({ 'model.ts': model })
  const first = project.terminal(chat(), [
    ['main> ', 'hi\r'],
    ['Hello.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(first.status).toBe(0)
  expect(visible(first.screen)).toContain('Go on with: rath chat')
  const second = project.terminal(chat(), [
    ['Going on with 3 chunks', ''],
    ['main> ', 'count\r'],
    ['You have said 2 things.', ''],
    ['main> ', '^D'],
  ])
  expect(second.status).toBe(0)
  const anew = project.terminal(chat('--new'), [
    ['main> ', 'count\r'],
    ['You have said 1 things.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(anew.screen)).not.toContain('Going on')
})

test('a conversation that works in another folder is not gone on with, though the store of this one names it', () => {
  const project = new Project({ 'model.ts': model, 'elsewhere/.keep': '' })
  const there = Session.fromUserMessage('Go on.').to('local', join(project.folder, 'elsewhere'))
  project.keep(there)
  project.write(
    'tag.ts',
    `import { openStore } from 'openrath/store'
await using store = await openStore('sqlite:.openrath/rath.db')
await store.sessions.tag('${there.id}', 'chat/${basename(project.folder)}-${sha256(project.folder).slice(0, 6)}/main')
`,
  )
  const { status, stderr } = project.program(process.execPath, 'tag.ts')
  expect(status, stderr).toBe(0)
  const { screen } = project.terminal(chat('--yes'), [
    ['main> ', 'write it\r'],
    ['It is done.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(screen)).not.toContain('Going on')
  expect(project.read('note.txt')).toBe('new\n')
  expect(existsSync(join(project.folder, 'elsewhere/note.txt'))).toBe(false)
})

test('a change is shown as a diff before it is made, and made only with a yes', () => {
  const project = new Project({ 'model.ts': model, 'note.txt': 'old\n' })
  const { screen } = project.terminal(chat(), [
    ['main> ', 'write it\r'],
    ['why: ', 'why\r'],
    ['A file, then.', ''],
    ['why: ', 'n not now\r'],
    ['not now', ''],
    ['main> ', 'write it\r'],
    ['why: ', 'y\r'],
    ['It is done.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(screen)).toContain('-old')
  expect(visible(screen)).toContain('+new')
  expect(project.read('note.txt')).toBe('new\n')
})

test('what is edited at the question runs instead', () => {
  const project = new Project({ 'model.ts': model })
  project.terminal(chat(), [
    ['main> ', 'wait\r'],
    ['$ sleep 600', ''],
    ['why: ', 'e\r'],
    // Takes the command away and types another.
    ['sleep 600', '\u0015touch made\r'],
    ['It is done.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(existsSync(join(project.folder, 'made'))).toBe(true)
})

test('Ctrl-C cancels the answer and keeps the conversation', () => {
  const project = new Project({ 'model.ts': model })
  const { status, screen } = project.terminal(chat('--yes'), [
    ['main> ', 'wait\r'],
    ['run_shell_command', '^C'],
    ['Cancelled', ''],
    ['main> ', 'count\r'],
    ['You have said 2 things.', ''],
    ['main> ', '^C'],
    ['/quit or Ctrl-D leaves.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(status).toBe(0)
  expect(visible(screen)).toContain('I begin and wait')
})

test('while an answer or a tool is waited for, a spinner says for how long, for how many tokens, and for what', () => {
  const project = new Project({ 'model.ts': model })
  const { screen } = project.terminal(chat('--yes'), [
    ['main> ', 'think\r'],
    ['asking scripted/model', '^C'],
    ['Cancelled', ''],
    ['main> ', 'wait\r'],
    ['chat uses run_shell_command', '^C'],
    ['Cancelled', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(screen)).toMatch(/⠙ [\d.]+ ?m?s, asking scripted\/model/)
  expect(visible(screen)).toMatch(/\S [\d.]+ ?m?s, \d+ tokens, chat uses run_shell_command/)
})

test('Ctrl-C at a question refuses it with the answer, and the next line is a message again', () => {
  const project = new Project({ 'model.ts': model, 'note.txt': 'old\n' })
  const { screen } = project.terminal(chat(), [
    ['main> ', 'write it\r'],
    ['why: ', '^C'],
    ['Cancelled', ''],
    ['main> ', 'count\r'],
    ['You have said 2 things.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(screen)).toMatch(/[\d.]+ ?m?s, \d+ tokens? of \d+/)
  expect(project.read('note.txt')).toBe('old\n')
})

test('branches of a conversation have their own files until they are merged', () => {
  const project = new Project({ 'model.ts': model, 'note.txt': 'old\n' })
  const { screen } = project.terminal(chat('--yes'), [
    ['main> ', 'hi\r'],
    ['Hello.', ''],
    ['main> ', '/fork bold\r'],
    ['bold> ', 'write it\r'],
    ['It is done.', ''],
    ['bold> ', '/branches\r'],
    ['* bold', ''],
    ['bold> ', '/switch main\r'],
    ['main> ', 'count\r'],
    ['You have said 2 things.', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(screen)).toMatch(/ {2}main +\d+ chunks/)
  expect(project.read('note.txt')).toBe('old\n')
  project.terminal(chat('--yes'), [
    ['main> ', '/merge bold\r'],
    ['bold is merged into main', ''],
    ['main> ', '/quit\r'],
  ])
  expect(project.read('note.txt')).toBe('new\n')
})

test('/undo takes back the answer and what it did to the files; /why tells what it came from', () => {
  const project = new Project({ 'model.ts': model, 'note.txt': 'old\n' })
  const { screen } = project.terminal(chat('--yes'), [
    ['main> ', 'write it\r'],
    ['It is done.', ''],
    ['main> ', '/why\r'],
    ['tokens in all', ''],
    ['main> ', '/undo\r'],
    ['Taken back', ''],
    ['main> ', 'count\r'],
    ['You have said 1 things.', ''],
    ['main> ', '/nonsense\r'],
    ['There is no /nonsense', ''],
    ['main> ', '/quit\r'],
  ])
  expect(visible(screen)).toMatch(/tool-result +write_workspace_file/)
  expect(visible(screen)).toContain('model scripted/model')
  expect(project.read('note.txt')).toBe('old\n')
})

test('without a terminal the lines of standard input are the conversation', () => {
  const project = new Project({ 'model.ts': model })
  const { status, stdout } = project.run({ args: chat(), input: 'hi\ncount\n' })
  expect(status).toBe(0)
  expect(stdout).toBe('Hello.\nYou have said 2 things.\n')
})

const { available } = (await isolatedBackend().probe?.()) ?? { available: false }
if (!available) console.warn('Nothing can be isolated here: that a chat is by default is not tested.')

test.runIf(available)('commands of a chat are isolated, unless they are to run as you', () => {
  const outside = join(mkdtempSync(join(tmpdir(), 'rath-outside-')), 'secret.txt')
  onTestFinished(() => rmSync(dirname(outside), { recursive: true, force: true }))
  writeFileSync(outside, 'outside-of-the-folder\n')
  const reading = `import { scripted } from 'openrath/testing'
export default scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return 'Read: ' + JSON.stringify(last.outcome)
  return { toolCalls: [{ name: 'run_shell_command', args: { cmd: 'cat ${outside}' } }] }
})
`
  const project = new Project({ 'model.ts': reading })
  const ask = (...args: string[]) =>
    project.run({ args: ['chat', '-m', 'model.ts', '--yes', ...args], input: 'read it\n' })
  const isolated = ask()
  expect(isolated.stderr).toContain('Commands run isolated: they see this folder')
  expect(isolated.stdout).toContain('Read: ')
  expect(isolated.stdout).not.toContain('outside-of-the-folder')
  const local = ask('--local')
  expect(local.stderr).toContain('Going on with')
  expect(local.stderr).toContain('Commands run local: on this machine as you')
  expect(local.stdout).toContain('outside-of-the-folder')
  expect(ask('--isolated').stdout).not.toContain('outside-of-the-folder')
  expect(ask('--local', '--isolated').status).toBe(2)
})

test.runIf(available)('a branch is gone on with only where its files are', () => {
  const project = new Project({ 'model.ts': model })
  project.run({ args: chat('--local', '--yes'), input: '/fork try\nwrite it\n/switch main\n' })
  const { stderr } = project.run({ args: chat('--yes'), input: '/switch try\n' })
  expect(stderr).toContain('Start the chat as you did then, with rath chat --local.')
})

test('a chat says why its commands are not isolated, and whoever asks for it gets an error', async () => {
  const refusing: SandboxBackend = {
    ...isolatedBackend(),
    open: () => Promise.reject(new RathError('sandbox-unavailable', 'bubblewrap is missing')),
  }
  const place = await choosePlace(refusing, '/project', {})
  expect(place).toMatchObject({ backend: 'local', spec: '/project' })
  expect(place.said).toContain('They could not be isolated: bubblewrap is missing')
  for (const options of [{ isolated: true }, { allow: ['example.com'] }])
    await expect(choosePlace(refusing, '/project', options)).rejects.toThrow('bubblewrap is missing')
})
