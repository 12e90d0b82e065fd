import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { map, Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import type { Chunk } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { torture } from '../support/torture.ts'

let folder: ReturnType<typeof temporaryFolder>
let runtime: Runtime
const project = () => join(folder.path, 'project')
const read = (path: string) => readFileSync(join(project(), path), 'utf8')
const start = () => Session.fromUserMessage('go').to('local', project())

beforeEach(() => {
  folder = temporaryFolder()
  mkdirSync(project())
  runtime = createRuntime({ store: 'memory:', workspaces: join(folder.path, 'kept') })
})

afterEach(async () => {
  await runtime.close()
  folder[Symbol.dispose]()
})

type Calls = readonly { readonly name: string; readonly args: object }[]

/** An agent that makes these calls, one turn each, and is done. */
function worker(name: string, ...turns: readonly Calls[]): Agent {
  return workerWith('Work.', name, ...turns)
}

function workerWith(prompt: string, name: string, ...turns: readonly Calls[]): Agent {
  const answers = turns.map(toolCalls => ({ toolCalls: toolCalls as { name: string; args: never }[] }))
  return new Agent(prompt, { name, model: scripted([...answers, `${name} is done`]) })
}

const writes = (path: string, content: string) => ({ name: 'write_workspace_file', args: { path, content } })
const runs = (cmd: string) => ({ name: 'run_shell_command', args: { cmd } })
const results = (session: Session) =>
  session.chunks.filter((chunk): chunk is Chunk<'tool-result'> => chunk.kind === 'tool-result')

describe('branches that change the same file differently', () => {
  const bold = () => worker('bold', [writes('line.txt', 'bold\n')])
  const calm = () => worker('calm', [writes('line.txt', 'calm\n')])
  const settled = (session: Session) =>
    session.chunks.flatMap(chunk => (chunk.kind === 'merge' ? (chunk.conflicts ?? []) : []))

  it('are refused by Parallel and by map, unless onConflict settles it', async () => {
    const both = { bold: bold(), calm: calm() }
    await expect(runtime.run(new Parallel(both), start())).rejects.toMatchObject({ code: 'merge-conflict' })
    const ours = new Parallel({ bold: bold(), calm: calm() }, { onConflict: 'ours' })
    const out = await runtime.run(ours, start())
    expect([read('line.txt'), settled(out)]).toMatchObject([
      'bold\n',
      [{ path: 'line.txt', settled: 'ours' }],
    ])
  })

  it('are settled before a judge looks, by a function that says who decided', async () => {
    const judge = new Agent('Judge.', { model: scripted(['Fine.']), builtins: false })
    const onConflict = () => ({ content: 'both\n', by: 'ada' })
    const out = await runtime.run(
      new Parallel({ bold: bold(), calm: calm() }, { join: judge, onConflict }),
      start(),
    )
    expect([read('line.txt'), out.text]).toEqual(['both\n', 'Fine.'])
    expect(settled(out)).toMatchObject([{ settled: 'written', by: 'ada' }])
  })

  it('are settled by map too, which hands the option to nobody else', async () => {
    const writer = new Agent('Write.', {
      model: scripted(({ messages }) => {
        const last = messages.at(-1)
        const content = last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : ''
        return last?.role === 'tool' ? 'done' : { toolCalls: [writes('line.txt', content)] }
      }),
    })
    const merge = (onConflict: 'refuse' | 'theirs') =>
      map(start(), ['a', 'b'], writer, { onConflict, runtime })
    await expect(merge('refuse')).rejects.toMatchObject({ code: 'merge-conflict' })
    expect(settled(await merge('theirs'))).toMatchObject([{ path: 'line.txt', settled: 'theirs' }])
    expect(read('line.txt')).toBe('b')
  })

  it('are refused by name when the option means nothing', () => {
    expect(() => new Parallel([bold()], { onConflict: 'mine' as never })).toThrow(
      "Parallel: onConflict is 'refuse'",
    )
    expect(() => map(start(), ['a'], bold(), { onConflict: 7 as never })).toThrow(
      "map: onConflict is 'refuse'",
    )
  })
})

describe('an agent in a folder', () => {
  it('has on its record where each call ran, the trees around it and what it changed', async () => {
    const session = await runtime.run(
      worker('coder', [writes('a.txt', 'A')], [runs('echo B > b.txt')]),
      start(),
    )
    const [first, second] = results(session) as [Chunk<'tool-result'>, Chunk<'tool-result'>]
    expect(first).toMatchObject({ ranOn: { backend: 'local' }, files: [{ path: 'a.txt', change: 'added' }] })
    expect(second).toMatchObject({ before: first.tree, files: [{ path: 'b.txt', change: 'added' }] })
  })

  it('records reading without trees', async () => {
    writeFileSync(join(project(), 'a.txt'), 'A')
    const reads = { name: 'read_workspace_file', args: { path: 'a.txt' } }
    const [result] = results(await runtime.run(worker('reader', [reads]), start()))
    expect(result).not.toHaveProperty('tree')
  })

  it('is told apart from a person who edits between its calls', async () => {
    const session = await runtime.run(worker('coder', [writes('a.txt', 'A')]), start())
    writeFileSync(join(project(), 'person.txt'), 'P')
    const again = await runtime.run(worker('coder', [runs('true')]), session.user('more'))
    const notes = again.chunks.filter(chunk => chunk.kind === 'note')
    expect(notes).toMatchObject([
      { name: 'drift', data: { files: [{ path: 'person.txt', change: 'added' }] } },
    ])
  })

  it('that is a tool of another works in the same files, and the outer call says what became of them', async () => {
    const inner = worker('inner', [writes('inner.txt', 'I')])
    const tools = [inner.asTool({ name: 'ask_inner', description: 'Ask.' })]
    const model = scripted([{ toolCalls: [{ name: 'ask_inner', args: { request: 'go' } }] }, 'done'])
    const outer = new Agent('Work.', { name: 'outer', model, tools })
    const [result] = results(await runtime.run(outer, start().fork()))
    expect(result).toMatchObject({ tool: 'ask_inner', files: [{ path: 'inner.txt', change: 'added' }] })
    expect(existsSync(join(project(), 'inner.txt'))).toBe(false)
  })
})

const folders = torture({ short: 20, full: 100 })

describe(`two branches of a project with ${folders * 100} files`, () => {
  class Both extends Workflow {
    left = worker('left', [runs('sed -i s/one/LEFT/ d7/f42.txt && ls d19 | wc -l')])
    right = worker('right', [runs('sed -i s/one/RIGHT/ d7/f42.txt && echo new > d19/new.txt')])
    judge = new Agent('Settle.', { name: 'judge', model: scripted(['LEFT and RIGHT\n']), builtins: false })
    seen: string[] = []

    async forward(session: Session): Promise<Session> {
      const [a, b] = session.forks(['left', 'right'])
      const [left, right] = await Promise.all([this.left(a), this.right(b)])
      this.seen.push(read('d7/f42.txt'))
      await expect(left.merge(right)).rejects.toMatchObject({
        code: 'merge-conflict',
        data: { conflicts: [{ path: 'd7/f42.txt', kind: 'content' }] },
      })
      this.seen.push(read('d7/f42.txt'))
      return left.merge(right, {
        onConflict: async ({ path }) => {
          const answer = await this.judge(Session.fromUserMessage(`Both changed ${path}.`))
          return { content: answer.text, by: 'judge' }
        },
      })
    }
  }

  it('work side by side, leave the folder alone until the merge, and an agent settles their conflict', async () => {
    for (let d = 0; d < folders; d++) {
      mkdirSync(join(project(), `d${d}`))
      for (let f = 0; f < 100; f++) writeFileSync(join(project(), `d${d}/f${f}.txt`), 'one\n')
    }
    const both = new Both()
    const session = await runtime.run(both, start())
    expect(both.seen).toEqual(['one\n', 'one\n'])
    expect([read('d7/f42.txt'), read('d19/new.txt')]).toEqual(['LEFT and RIGHT\n', 'new\n'])
    expect(session.chunks.findLast(chunk => chunk.kind === 'merge')).toMatchObject({
      conflicts: [{ path: 'd7/f42.txt', kind: 'content', settled: 'written', by: 'judge' }],
      tree: expect.any(String),
    })
  })
})

describe('what-if', () => {
  it('a rewound session goes on beside the original, with the files as they were', async () => {
    const session = await runtime.run(
      worker('coder', [writes('a.txt', 'first')], [writes('a.txt', 'second')]),
      start(),
    )
    const back = session.rewind((results(session)[0] as Chunk).index)
    const other = await runtime.run(worker('coder', [runs('cat a.txt; echo other > b.txt')]), back)
    expect(JSON.stringify(results(other).at(-1)?.outcome)).toContain('first')
    expect([read('a.txt'), existsSync(join(project(), 'b.txt'))]).toEqual(['second', false])
    await runtime.checkout(other)
    expect([read('a.txt'), read('b.txt')]).toEqual(['first', 'other\n'])
  })
})

describe('files and the journal', () => {
  it('a replay touches no file and ends with the same state', async () => {
    const make = () => worker('coder', [writes('a.txt', 'A')], [runs('echo B >> a.txt')])
    const session = await runtime.run(make(), start(), { id: 'run-1' })
    writeFileSync(join(project(), 'a.txt'), 'changed since')
    const report = await runtime.replay('run-1', make())
    expect(report).toMatchObject({ ok: true, state: session.state })
    expect(read('a.txt')).toBe('changed since')
  })

  it('a replay of tools runs them on copies of the recorded files', async () => {
    writeFileSync(join(project(), 'a.txt'), 'A\n')
    const make = () => worker('coder', [runs('echo B >> a.txt; cat a.txt')], [runs('wc -l < a.txt')])
    await runtime.run(make(), start(), { id: 'run-1' })
    const report = await runtime.replay('run-1', make(), { mode: 'tools' })
    expect(report.tools.map(({ tool, same }) => [tool, same])).toEqual([
      ['run_shell_command', true],
      ['run_shell_command', true],
    ])
    expect(read('a.txt')).toBe('A\nB\n')
  })

  it('a run that borrows outcomes goes on with the files that belong to them', async () => {
    const first = (text: string) => worker('first', [writes('a.txt', text)])
    const second = (cmd: string) => workerWith(`Run ${cmd}.`, 'second', [runs(cmd)])
    class Pair extends Workflow {
      first = first('A')
      second: Agent
      constructor(cmd: string) {
        super()
        this.second = second(cmd)
      }
      async forward(session: Session) {
        return this.second(await this.first(session))
      }
    }
    await runtime.run(new Pair('echo one >> a.txt'), start(), { id: 'run-1' })
    expect(read('a.txt')).toBe('Aone\n')
    const again = await runtime.run(new Pair('echo two >> a.txt'), start(), { id: 'run-2', reuse: 'run-1' })
    expect(read('a.txt')).toBe('Atwo\n')
    expect(again.chunks.find(chunk => chunk.kind === 'note')).toMatchObject({ name: 'files-put-away' })
  })
})

describe('branches', () => {
  it('that are tried again do not find what the failed attempt wrote', async () => {
    const seen: boolean[] = []
    const looks = { name: 'workspace_path_exists', args: { path: 'a.txt' } }
    const attempt = async (session: Session) => {
      const out = await worker('coder', [looks], [writes('a.txt', 'A')])(session)
      seen.push(JSON.stringify(results(out)[0]?.outcome).includes('true'))
      if (seen.length === 1) throw new Error('not yet')
      return out
    }
    await runtime.run(new Parallel([attempt], { onFailure: { retry: 1 } }), start())
    expect(seen).toEqual([false, false])
    expect(read('a.txt')).toBe('A')
  })

  it('of a fork leave the folder alone also when one returns a session from outside of it', async () => {
    const root = start()
    const parallel = new Parallel([worker('coder', [writes('a.txt', 'A')]), () => root])
    await runtime.run(parallel, root.fork('dev'))
    expect(existsSync(join(project(), 'a.txt'))).toBe(false)
  })
})

describe('two runtimes of one process', () => {
  it('do not find the files of each other', async () => {
    await using other = createRuntime({ store: 'memory:', workspaces: join(folder.path, 'other') })
    const [left, right] = start().forks(['left', 'right'])
    const ours = await runtime.run(worker('ours', [writes('a.txt', 'ours')]), left)
    const theirs = await other.run(worker('theirs', [writes('b.txt', 'theirs')]), right)
    await expect(ours.merge(theirs)).rejects.toMatchObject({
      code: 'unknown-blob',
      message: expect.stringContaining('not kept by this runtime'),
    })
    await expect(theirs.diff(ours)).rejects.toMatchObject({ code: 'unknown-blob' })
    expect((await ours.diff(left)).files).toMatchObject([{ path: 'a.txt', change: 'added', side: 'ours' }])
  })

  it('hand their files down to sessions that they read, and to what is made of those', async () => {
    const [left, right] = start().forks(['left', 'right'])
    const one = await runtime.run(worker('one', [writes('a.txt', 'one')]), left)
    const two = await runtime.run(worker('two', [writes('b.txt', 'two')]), right)
    const [again, other] = [await runtime.sessions.get(one.id), await runtime.sessions.get(two.id)]
    const merged = await again.user('more').merge(other)
    expect((await merged.diff(left)).files.map(({ path }) => path)).toEqual(['a.txt', 'b.txt'])
  })
})
