import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { brokenLine } from '../../src/demo/repository.ts'
import { type Asked, chatServer, type Said } from '../support/chat-server.ts'
import { entry, Project } from './make.ts'

test('--live asks the model that the environment names, for the same task, over its real protocol', async () => {
  const project = new Project()
  await using server = await chatServer(answer)
  const env = { ...project.env, TMPDIR: project.folder, ...server.env }
  const child = spawn(process.execPath, [entry, 'demo', '--live'], { cwd: project.folder, env })
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^The model is \S*house-model\.$/m)
  expect(stdout).not.toContain('script')
  expect(stdout).toMatch(/^validator on careful +rejects it: Exit code 1/m)
  expect(stdout).toMatch(
    /^attempts +brings the files of quick back to the folder; careful stays on the record\.$/m,
  )
  expect(server.asked.length).toBeGreaterThan(10)
})

/** A model with a mind of its own: here it is the careful coder who gets it wrong. */
function answer({ messages, tools = [] }: Asked): Said {
  const all = JSON.stringify(messages)
  const has = (name: string) => tools.some(tool => tool.function.name === name)
  const finished = messages.findLastIndex(({ role, content }) => role === 'assistant' && content)
  const results = messages.slice(finished + 1).filter(({ role }) => role === 'tool').length
  if (has('run_shell_command')) {
    const [, cmd = ''] = /run with `([^`]+)`/.exec(all) ?? []
    return results === 0 ? [{ name: 'run_shell_command', args: { cmd } }] : 'It has ended.'
  }
  if (has('edit_workspace_file')) {
    const good =
      "  return title.normalize('NFKD').replace(/[^a-z0-9 ]/gi, '').trim().toLowerCase().replace(/ +/g, '-')"
    const edit = all.includes('smallest edit') ? good : "  return 'wrong'"
    const args = { path: 'src/slug.js', old: brokenLine, new: edit }
    return results === 0 ? [{ name: 'edit_workspace_file', args }] : 'Mended.'
  }
  if (has('read_workspace_file')) {
    return results === 0
      ? [{ name: 'read_workspace_file', args: { path: 'ISSUE.md' } }]
      : 'Findings: only one space is replaced.'
  }
  const choice = all.includes('It has ended.')
    ? 'none'
    : all.includes('Findings: only')
      ? 'attempts'
      : 'researcher'
  return JSON.stringify({ reason: 'It is time.', choice })
}
