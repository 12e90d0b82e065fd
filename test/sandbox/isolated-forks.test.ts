import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { testHere } from './isolated-here.ts'
import { temporaryFolder } from './make.ts'

const isRoot = process.getuid?.() === 0

const runs = (...commands: readonly string[]) => [
  ...commands.map(cmd => ({ toolCalls: [{ name: 'run_shell_command', args: { cmd } }] })),
  'done',
]

const worker = (...commands: readonly string[]) => new Agent('Work.', { model: scripted(runs(...commands)) })

testHere('two forks behind walls work side by side, see only their own files, and merge', async () => {
  using base = temporaryFolder()
  const project = join(base.path, 'project')
  mkdirSync(join(project, 'src'), { recursive: true })
  writeFileSync(join(project, 'src/main.txt'), 'one\ntwo\nthree\nfour\nfive\n')
  // Root works in the folder of somebody else, who is to own what comes back.
  if (isRoot) for (const path of ['', 'src', 'src/main.txt']) chownSync(join(project, path), 1000, 1000)
  const read = (path: string) => readFileSync(join(project, path), 'utf8')
  await using runtime = createRuntime({ store: 'memory:', workspaces: join(base.path, 'kept') })

  const session = Session.fromUserMessage('go').to('isolated', project)
  const [left, right] = session.forks(['left', 'right'])
  const [a, b] = await Promise.all([
    runtime.run(worker('sed -i s/one/LEFT/ src/main.txt && touch left.txt', 'ls; id -un; ls /root'), left),
    runtime.run(worker('sed -i s/five/RIGHT/ src/main.txt && mkdir made', 'ls; cat src/main.txt'), right),
  ])
  const said = (branch: Session) =>
    branch.chunks
      .filter(chunk => chunk.kind === 'tool-result')
      .map(chunk => chunk.text)
      .join('\n')
  expect(said(a)).toContain('left.txt')
  expect(said(a)).toContain('agent')
  expect(said(a)).not.toContain('made')
  expect(said(b)).toContain('RIGHT')
  expect(said(b)).not.toContain('left.txt')
  expect(read('src/main.txt')).toBe('one\ntwo\nthree\nfour\nfive\n')
  expect(a.chunks.findLast(chunk => chunk.kind === 'tool-result')).toMatchObject({
    ranOn: { backend: 'isolated' },
  })

  await a.merge(b)
  expect(read('src/main.txt')).toBe('LEFT\ntwo\nthree\nfour\nRIGHT\n')
  expect([existsSync(join(project, 'left.txt')), existsSync(join(project, 'made'))]).toEqual([true, true])
  for (const path of ['left.txt', 'made', 'src/main.txt']) {
    expect(statSync(join(project, path)).uid).toBe(statSync(project).uid)
  }
})
