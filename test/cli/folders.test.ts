import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Project } from './make.ts'

const workflow = `
import { Agent } from 'openrath'
import { policy } from 'openrath/policy'
import { scripted } from 'openrath/testing'

const write = (path, content) => ({ toolCalls: [{ name: 'write_workspace_file', args: { path, content } }] })
const turns = [write('one.txt', '1'), { toolCalls: [{ name: 'run_shell_command', args: { cmd: 'echo 2 > two.txt' } }] }]

export default new Agent('Write.', {
  name: 'writer',
  model: scripted(({ messages }) => turns[messages.filter(({ role }) => role === 'tool').length] ?? 'Done.'),
  policy: policy({ approval: [{ tool: 'run_shell_command' }] }),
})
`

/** A project in a folder of its own, with a run of its own that waits, beside the folder of somebody's thesis. */
function parked() {
  const project = new Project({ 'work/flow.ts': workflow, 'other/thesis.md': 'ten years\n' })
  const work = join(project.folder, 'work')
  const store = ['--store', `sqlite:${join(work, '.openrath/rath.db')}`]
  const rath = (cwd: string, ...args: string[]) => project.run({ args: [...args, ...store], cwd })
  const ran = rath('work', 'run', 'flow.ts', '--local', '.', 'Go.')
  expect([ran.status, ran.stderr]).toEqual([3, expect.stringContaining('waits for a decision')])
  const approved = rath('work', 'approve', 'last', '--yes')
  expect(approved.status, approved.stderr).toBe(0)
  return { project, rath, work, other: join(project.folder, 'other') }
}

test('rath resume from another folder goes on in the folder that the run began in', () => {
  const { rath, work, other } = parked()
  const resumed = rath('other', 'resume', 'last')
  expect(resumed.status, resumed.stderr).toBe(0)
  expect(readdirSync(other)).toEqual(['thesis.md'])
  expect(readdirSync(work).sort()).toEqual(['.openrath', 'flow.ts', 'one.txt', 'two.txt'])
})

test('rath resume of a project that was moved stops with the ways out, and goes on where --moved-to says', () => {
  const { project, work } = parked()
  const moved = join(project.folder, 'moved')
  renameSync(work, moved)
  mkdirSync(work)
  const rath = (...args: string[]) => project.run({ args, cwd: 'moved' })
  const refused = rath('resume', 'last', '--file', 'flow.ts')
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain(`This session began in ${work}`)
  expect(refused.stderr).toMatch(/cd .*rath checkout SESSION FOLDER.*--moved-to FOLDER/s)
  expect(readdirSync(work)).toEqual([])
  const gone = rath('resume', 'last', '--file', 'flow.ts', '--moved-to', '../other')
  expect(gone.status).toBe(1)
  expect(gone.stderr).toContain('holds other files than the run left')
  expect(readdirSync(join(project.folder, 'other'))).toEqual(['thesis.md'])
  const resumed = rath('resume', 'last', '--file', 'flow.ts', '--moved-to', '.')
  expect(resumed.status, resumed.stderr).toBe(0)
  expect(existsSync(join(moved, 'two.txt'))).toBe(true)
})

test('rath checkout brings the files of a run to a folder, and says what became of those that were there', () => {
  const { project, rath, other } = parked()
  const out = rath('other', 'checkout', 'last', '../copy')
  expect(out.status, out.stderr).toBe(0)
  expect(readdirSync(join(project.folder, 'copy')).sort()).toEqual(['flow.ts', 'one.txt'])
  const here = rath('other', 'checkout', 'last', '.', '--json')
  expect(here.status, here.stderr).toBe(0)
  const { before } = JSON.parse(here.stdout)
  expect(readdirSync(other).sort()).toEqual(['flow.ts', 'one.txt'])
  const objects = join(project.home, 'workspaces/objects')
  expect(project.program('git', '--git-dir', objects, 'cat-file', '-p', `${before}:thesis.md`).stdout).toBe(
    'ten years\n',
  )
})
