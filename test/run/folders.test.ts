import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime, type Runtime, type RuntimeOptions } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { failureOf } from './make.ts'

let folder: ReturnType<typeof temporaryFolder>
let store: Store
const open: Runtime[] = []
const started = process.cwd()
const [a, b] = [() => join(folder.path, 'a'), () => join(folder.path, 'b')]

beforeEach(async () => {
  folder = temporaryFolder()
  mkdirSync(a())
  mkdirSync(b())
  writeFileSync(join(a(), 'notes.txt'), 'begun\n')
  writeFileSync(join(b(), 'thesis.md'), 'ten years of work\n')
  store = await openStore('memory:')
})

afterEach(async () => {
  process.chdir(started)
  await Promise.all(open.splice(0).map(runtime => runtime.close()))
  await store.close()
  folder[Symbol.dispose]()
})

/** Another process: nothing but the store and what is kept of files is the same. */
function another(options: RuntimeOptions = {}): Runtime {
  const runtime = createRuntime({ store, workspaces: join(folder.path, 'kept'), ...options })
  open.push(runtime)
  return runtime
}

const append = tool({
  name: 'append',
  description: 'Adds a line to log.txt.',
  input: { type: 'object', properties: { line: { type: 'string' } }, required: ['line'] },
  effect: 'workspace',
  run: async ({ line }: { line: string }, { sandbox }) => {
    const { files } = await sandbox
    const before = await files.read('log.txt').then(
      bytes => new TextDecoder().decode(bytes),
      () => '',
    )
    await files.write('log.txt', `${before}${line}\n`)
    return 'added'
  },
})
const sign = tool({
  name: 'sign',
  description: 'Signs.',
  input: { type: 'object', properties: {} },
  effect: 'idempotent',
  approval: true,
  run: () => 'signed',
})
const turns = [{ toolCalls: [{ name: 'append', args: { line: 'one' } }] }, { toolCalls: [{ name: 'sign' }] }]
const clerk = (last = 'two') =>
  new Agent('Log, then sign.', {
    name: 'clerk',
    tools: [append, sign],
    builtins: false,
    // By what was done and not by count: another process goes on with it.
    model: scripted(({ messages }) => {
      const asked = messages.findLastIndex(message => message.role === 'user')
      const done = messages.slice(asked).filter(message => message.role === 'tool').length
      if (done === 2) return { toolCalls: [{ name: 'append', args: { line: last } }] }
      return turns[done] ?? 'Done.'
    }),
  })

/** A run in folder a that waits for somebody, with the first of its two lines written. */
async function parked(session: Session, workflow = clerk() as Workflow, options: RuntimeOptions = {}) {
  process.chdir(a())
  const runtime = another(options)
  const pending = runtime.run(workflow, session)
  const error = await failureOf(pending)
  expect(error.code).toBe('run-waiting')
  const [question] = await runtime.approvals(pending.runId)
  await runtime.decide(pending.runId, question?.approval as string, { verdict: 'approved' })
  expect(readdirSync(a()).sort()).toEqual(['log.txt', 'notes.txt'])
  return { run: pending.runId, session: error.session as Session }
}

const here = () => {
  process.chdir(a())
  return Session.fromUserMessage('go').to('local', './')
}
const log = (at = a()) => readFileSync(join(at, 'log.txt'), 'utf8')
const untouched = () => {
  expect(readdirSync(b())).toEqual(['thesis.md'])
  expect(readFileSync(join(b(), 'thesis.md'), 'utf8')).toBe('ten years of work\n')
}
/** As sessions were recorded before a placement named its folder. */
const asBefore = () =>
  Session.fromUserMessage('go').append({ kind: 'placement', backend: 'local', spec: './' })

describe('a run that is resumed from another current folder', () => {
  it('goes on in the folder that it began in, and touches nothing else', async () => {
    const { run } = await parked(here())
    process.chdir(b())
    const out = await another().resume(run, clerk())
    expect(log()).toBe('one\ntwo\n')
    expect(out.placement?.spec).toBe(a())
    untouched()
  })

  it('also where the placement is a bare name, and nothing was done in it yet', async () => {
    process.chdir(folder.path)
    const once = new Agent('Sign.', {
      tools: [append, sign],
      builtins: false,
      model: scripted(({ messages }) => {
        const done = messages.filter(message => message.role === 'tool').length
        return [turns[1], turns[0]][done] ?? 'Done.'
      }),
    })
    const runtime = another()
    const pending = runtime.run(once, Session.fromUserMessage('go').to('local', 'a'))
    await failureOf(pending)
    const [question] = await runtime.approvals(pending.runId)
    await runtime.decide(pending.runId, question?.approval as string, { verdict: 'approved' })
    process.chdir(b())
    await another().resume(pending.runId, once)
    expect(log()).toBe('one\n')
    untouched()
  })

  it('goes on where it was placed when the current folder changed before its first call', async () => {
    const session = here()
    process.chdir(b())
    await failureOf(another().run(clerk(), session))
    expect(log()).toBe('one\n')
    untouched()
  })

  it('stops when its workflow places the session by itself, from whichever folder is current', async () => {
    class Placing extends Workflow {
      clerk = clerk()
      forward(session: Session) {
        return this.clerk(session.to('local', './'))
      }
    }
    const { run } = await parked(Session.fromUserMessage('go'), new Placing())
    process.chdir(b())
    const error = await failureOf(another().resume(run, new Placing()))
    expect(error).toMatchObject({ code: 'workspace-elsewhere', data: { began: a(), here: b() } })
    untouched()
    process.chdir(a())
    await another().resume(run, new Placing())
    expect(log()).toBe('one\ntwo\n')
  })

  for (const [what, options] of [
    ['', {}],
    [', also where no files are kept', { workspaces: false }],
  ] as const) {
    it(`stops when its placement was recorded as ./ before placements named their folder${what}`, async () => {
      const { run, session } = await parked(asBefore(), clerk(), options)
      // What was kept of the placement then did not say where it was.
      rmSync(join(folder.path, 'kept', 'placed'), { recursive: true, force: true })
      process.chdir(b())
      const error = await failureOf(another(options).resume(run, clerk()))
      expect(error.code).toBe('workspace-elsewhere')
      expect(error.message).toContain(a())
      expect(error.message).toContain(b())
      expect(error.message).toMatch(/cd .*checkout.*movedTo/s)
      untouched()
      const next = await failureOf(another(options).run(clerk(), session.user('more')))
      expect(next.code).toBe('workspace-elsewhere')
      untouched()
      process.chdir(a())
      await another(options).resume(run, clerk())
      expect(log()).toBe('one\ntwo\n')
    })
  }
})

describe('a folder that is another one now', () => {
  it('made again under the same name, it is not worked in, and not restored into', async () => {
    const { run, session } = await parked(here())
    rmSync(a(), { recursive: true })
    cpSync(b(), a(), { recursive: true })
    for (const go of [
      () => another().resume(run, clerk()),
      () => another().run(clerk(), session.user('more')),
      () => another().checkout(session),
      () => session.fork().merge(session.fork()),
    ]) {
      const error = await failureOf(go() as never)
      expect(error).toMatchObject({ code: 'workspace-elsewhere', data: { began: a(), here: a() } })
    }
    expect(readdirSync(a())).toEqual(['thesis.md'])
  })

  it('deleted, it is not made again', async () => {
    const { run } = await parked(here())
    rmSync(a(), { recursive: true })
    const error = await failureOf(another().resume(run, clerk()))
    expect(error.code).toBe('workspace-elsewhere')
    expect(existsSync(a())).toBe(false)
  })

  it('behind a link that leads somewhere else now, it is not worked in', async () => {
    const link = join(folder.path, 'current')
    symlinkSync(a(), link)
    const { run } = await parked(Session.fromUserMessage('go').to('local', link))
    unlinkSync(link)
    symlinkSync(b(), link)
    const error = await failureOf(another().resume(run, clerk()))
    expect(error).toMatchObject({ code: 'workspace-elsewhere', data: { began: a(), here: b() } })
    untouched()
    unlinkSync(link)
    symlinkSync(a(), link)
    await another().resume(run, clerk())
    expect(log()).toBe('one\ntwo\n')
  })

  it('on another machine, where the project has the same name, it is not worked in', async () => {
    const { session, run } = await parked(here())
    const away = join(folder.path, 'away')
    renameSync(a(), away)
    cpSync(b(), a(), { recursive: true })
    // Nothing of what the first machine kept is here but the store.
    const machine = () => another({ workspaces: join(folder.path, 'kept-elsewhere') })
    expect((await failureOf(machine().run(clerk(), session.user('more')))).code).toBe('workspace-elsewhere')
    expect((await failureOf(machine().resume(run, clerk()))).code).toBe('workspace-elsewhere')
    expect(readdirSync(a())).toEqual(['thesis.md'])
  })
})

describe('a project that was moved on purpose', () => {
  it('goes on in its new folder, and sessions of the run do so too', async () => {
    const { run } = await parked(here())
    const moved = join(folder.path, 'moved')
    renameSync(a(), moved)
    process.chdir(b())
    const out = await another().resume(run, clerk(), { movedTo: moved })
    expect(log(moved)).toBe('one\ntwo\n')
    expect((await store.runs.get(run)).data.movedTo).toEqual([moved])
    await failureOf(another().run(clerk(), out.user('more')))
    expect(log(moved)).toBe('one\ntwo\none\n')
    expect(existsSync(a())).toBe(false)
    untouched()
  })

  it('goes on in a copy that holds the files as it left them, and in an empty folder', async () => {
    const { run } = await parked(here())
    const copy = join(folder.path, 'copy')
    cpSync(a(), copy, { recursive: true })
    await another().resume(run, clerk(), { movedTo: copy })
    expect([log(copy), log()]).toEqual(['one\ntwo\n', 'one\n'])

    rmSync(join(a(), 'log.txt'))
    const { run: second } = await parked(here())
    const empty = join(folder.path, 'empty')
    mkdirSync(empty)
    await another().resume(second, clerk(), { movedTo: empty })
    expect([log(empty), readFileSync(join(empty, 'notes.txt'), 'utf8')]).toEqual(['one\ntwo\n', 'begun\n'])
  })

  it('is refused in a folder with other files, until a checkout brings those of the run', async () => {
    const { run, session } = await parked(here())
    const error = await failureOf(another().resume(run, clerk(), { movedTo: b() }))
    expect(error.code).toBe('workspace-elsewhere')
    untouched()
    const runtime = another()
    const kept = await runtime.checkout(session, b())
    await runtime.resume(run, clerk(), { movedTo: b() })
    expect(log(b())).toBe('one\ntwo\n')
    expect(await runtime.places.workspaces?.has(kept as string)).toBe(true)
  })
})

it.each([
  { others: 'none of the files that its calls wrote', before: undefined, after: 'one\ntwo\n' },
  { others: 'its own file where a call wrote one', before: 'mine\n', after: 'mine\none\ntwo\n' },
])(
  'a run that borrows from one in another folder keeps the files there, with $others',
  async ({ before, after }) => {
    const { run } = await parked(here())
    await another().resume(run, clerk())
    process.chdir(b())
    if (before !== undefined) writeFileSync(join(b(), 'log.txt'), before)
    const session = Session.fromUserMessage('go').to('local', './')
    await another().run(clerk(), session, { reuse: run })
    expect(readdirSync(b()).sort()).toEqual(['log.txt', 'thesis.md'])
    expect([log(b()), log(a())]).toEqual([after, 'one\ntwo\n'])
    expect(readFileSync(join(b(), 'thesis.md'), 'utf8')).toBe('ten years of work\n')
  },
)
