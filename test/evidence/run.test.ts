import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bisect } from '../../src/evidence/bisect.ts'
import { blame } from '../../src/evidence/blame.ts'
import { importBundle } from '../../src/evidence/bundle/import.ts'
import { readBundle } from '../../src/evidence/bundle/read.ts'
import { writeBundle } from '../../src/evidence/bundle/write.ts'
import { Agent } from '../../src/flow/agent.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { textOf } from './make.ts'

// What agents really record: built-in tools in a folder, with a person who edits in between, forks and a merge.

let root: string
let runtime: Runtime
const project = () => join(root, 'project')
const kept = () => join(root, 'kept')

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'openrath-evidence-run-'))
  mkdirSync(project())
  runtime = createRuntime({ store: 'memory:', workspaces: kept() })
})

afterEach(async () => {
  await runtime.close()
  rmSync(root, { recursive: true })
})

/** An agent that writes these files, one call each. */
function writer(name: string, ...contents: string[]): Agent {
  const answers = contents.map(content => ({
    toolCalls: [{ name: 'write_workspace_file', args: { path: 'a.txt', content } }],
  }))
  return new Agent(`You are ${name}.`, { name, model: scripted([...answers, 'done']) })
}

test('a line of a file leads to the agent, its prompt, and what it had seen', async () => {
  writeFileSync(join(project(), 'a.txt'), '1\n2\n3\n4\n5\n')
  const input = Session.fromUserMessage('Count.').to('local', project())
  const first = await runtime.run(writer('ann', '1\ntwo\n3\n4\n5\n'), input)
  writeFileSync(join(project(), 'a.txt'), '1\ntwo\n3\n4\n5\nperson\n')
  const second = await runtime.run(writer('bob', '1\ntwo\n3\n4\n5\nperson\nbob\n'), first)
  const forks = second.forks(['left', 'right'])
  const [left, right] = await Promise.all([
    runtime.run(writer('leo', 'one\ntwo\n3\n4\n5\nperson\nbob\n'), forks[0] as Session),
    runtime.run(writer('rae', '1\ntwo\n3\nfour\n5\nperson\nbob\n'), forks[1] as Session),
  ])
  const merged = await left.merge(right)
  expect(readFileSync(join(project(), 'a.txt'), 'utf8')).toBe('one\ntwo\n3\nfour\n5\nperson\nbob\n')

  const store = await runtime.store
  const lines = await blame(merged, { path: 'a.txt' }, { store, workspaces: kept() })
  expect(lines.map(({ source, producer }) => (source === 'call' ? producer?.by : source))).toEqual([
    'leo',
    'ann',
    'before',
    'rae',
    'before',
    'drift',
    'bob',
  ])
  const { promptText, seen } = await blame(merged, { chunk: lines[3]?.producer?.chunk as string }, { store })
  expect(promptText).toBe('You are rae.')
  expect(seen.map(({ branch }) => branch)).not.toContain('left')
  expect(seen.at(-1)?.text).toBe('done')

  const found = await bisect(
    merged,
    folder => !readFileSync(join(folder, 'a.txt'), 'utf8').includes('four'),
    {
      workspaces: kept(),
    },
  )
  expect(found).toMatchObject({ result: 'found', first: { producer: { by: 'rae', branch: 'right' } } })
})

test('a command that adds to what a person wrote meanwhile has its own lines, and the person theirs', async () => {
  const shell = (cmd: string) => {
    const call = { name: 'run_shell_command', args: { cmd } }
    return new Agent('Work.', { name: 'ann', model: scripted([{ toolCalls: [call] }, 'done']) })
  }
  const input = Session.fromUserMessage('Go.').to('local', project())
  const first = await runtime.run(shell('echo one > a.txt'), input)
  writeFileSync(join(project(), 'a.txt'), 'one\nperson\n')
  const second = await runtime.run(shell('echo two >> a.txt'), first)
  const result = second.chunks.findLast(chunk => chunk.kind === 'tool-result')
  expect(result?.files).toMatchObject([{ path: 'a.txt', change: 'modified' }])
  const lines = await blame(second, { path: 'a.txt' }, { workspaces: kept() })
  expect(lines.map(({ text, source }) => [text, source])).toEqual([
    ['one', 'call'],
    ['person', 'drift'],
    ['two', 'call'],
  ])
})

test('a run with its journal goes to another store and back', async () => {
  const input = Session.fromUserMessage('Count.').to('local', project())
  const output = await runtime.run(writer('ann', 'one\n'), input, { id: 'counting' })
  const store = await runtime.store
  const bundle = await readBundle(await textOf(writeBundle(store, { runs: ['counting'] })))
  expect(bundle.sessions.map(({ id }) => id)).toContain(output.id)
  expect(bundle.sessions.some(({ id }) => id.startsWith('prompt-'))).toBe(true)
  const other = await openStore('memory:')
  await importBundle(bundle, other)
  const again = createRuntime({ store: other, workspaces: kept() })
  const report = await again.replay('counting', writer('ann', 'one\n'))
  expect(report).toMatchObject({ ok: true, served: 3 })
  await again.close()
})
