import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { effect } from '../../src/run/forward.ts'
import { Session } from '../../src/session/session.ts'
import { recordedRuns } from '../../src/testing/recorded-runs.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import { policy } from '../../src/tool/policy/policy.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { calls, counted } from './journal/make.ts'
import { failureOf } from './make.ts'

let folder: ReturnType<typeof temporaryFolder>
const kept = () => join(folder.path, 'runs')
const file = (name: string) => join(kept(), `${name}.json`)
const go = (text = 'Is it open?') => Session.fromUserMessage(text)
const record = (name: string, ...work: [Workflow, Session, object?]) =>
  recordedRuns(kept(), { record: name, runtime: { workspaces: join(folder.path, 'trees') } }).check(
    name,
    ...work,
  )
const check = (name: string, ...work: [Workflow, Session, object?]) =>
  recordedRuns(kept()).check(name, ...work)

beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder[Symbol.dispose]())

/** Who is asked when nothing is recorded: nobody. */
const nobody: Script = () => expect.unreachable()
const door = (script: Script, prompt = 'You watch a door.', tools = [counted('look', 'read').tool]) =>
  new Agent(prompt, { name: 'guard', model: scripted(script), tools, builtins: false })
const looks = [calls('look'), 'It is open.']

describe('a recorded run', () => {
  it('is replayed from its file, and nobody is asked', async () => {
    const out = await record('guard', door(looks), go())
    const replayed = await check('guard', door(nobody), go())
    expect(replayed.text).toBe('It is open.')
    expect(replayed.state).toBe(out.state)
  })

  it('fails when a prompt would change behaviour, and says where, what, why and how to record it again', async () => {
    await record('guard', door(looks), go())
    const error = await failureOf(check('guard', door(nobody, 'You open a door.'), go()))
    expect(error).toMatchObject({ code: 'replay-diverged', data: { cause: 'other prompt', name: 'guard' } })
    for (const part of [
      'guard asked for model after chunk 0 (user)',
      '-You watch a door.',
      '+You open a door.',
    ])
      expect(error.message).toContain(part)
    expect(error.message).toContain('OPENRATH_RECORD=guard npm test')
  })

  it('fails when a tool looks different to the model, with both descriptions', async () => {
    await record('guard', door(looks), go())
    const tools = [{ ...counted('look', 'read').tool, description: 'Looks twice.' }]
    const error = await failureOf(check('guard', door(nobody, undefined, tools), go()))
    expect(error.data).toMatchObject({ cause: 'other tool schema' })
    expect(error.message).toContain('Looks twice.')
  })

  it('fails when it is given another session than it was recorded with', async () => {
    await record('guard', door(looks), go())
    const error = await failureOf(check('guard', door(nobody), go('Is it shut?')))
    expect(error.message).toContain('-user: Is it open?\n+user: Is it shut?')
  })

  it('that was never recorded says how', async () => {
    const error = await failureOf(check('new', door(nobody), go()))
    expect(error.code).toBe('recording-missing')
    expect(error.message).toContain(`${file('new')}. To record it, with a key: OPENRATH_RECORD=new npm test`)
  })

  it('keeps the options of the call: what a policy refused is refused again', async () => {
    const options = { policy: policy({ deny: ['look'] }) }
    const out = await record('refused', door(looks), go(), options)
    expect(out.chunks.find(chunk => chunk.kind === 'tool-result')).toMatchObject({
      outcome: { kind: 'denied' },
    })
    expect((await check('refused', door(nobody), go(), options)).state).toBe(out.state)
  })

  it('of agents in agents and files is replayed without touching any', async () => {
    const project = join(folder.path, 'project')
    mkdirSync(project)
    const team = (isLive: boolean) => {
      const writes = { name: 'write_workspace_file', args: { path: 'a.txt', content: 'A' } }
      const model = (script: Script) => scripted(isLive ? script : nobody)
      const writer = new Agent('Write.', {
        name: 'writer',
        model: model([{ toolCalls: [writes] }, 'Written.']),
      })
      const asks = { toolCalls: [{ name: 'ask', args: { request: 'Write it.' } }] }
      const tools = [writer.asTool({ name: 'ask', description: 'Asks.' })]
      return new Agent('Lead.', { name: 'lead', model: model([asks, 'Done.']), tools })
    }
    const out = await record('team', team(true), go().to('local', project))
    writeFileSync(join(project, 'a.txt'), 'mine now')
    const replayed = await check('team', team(false), go().to('local', '/nowhere'))
    expect(replayed.state).toBe(out.state)
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('mine now')
  })
})

describe('recording', () => {
  it('of one run leaves the others alone', async () => {
    await record('one', door(looks), go())
    const before = readFileSync(file('one'), 'utf8')
    const runs = recordedRuns(kept(), { record: 'two' })
    await runs.check('one', door(nobody), go())
    await runs.check('two', door(looks), go())
    expect(readFileSync(file('one'), 'utf8')).toBe(before)
    expect(existsSync(file('two'))).toBe(true)
  })

  it('writes a file that people can read and compare: members in order, prompts and tools in plain text, no times of effects', async () => {
    await record('guard', door(looks), go())
    const text = readFileSync(file('guard'), 'utf8')
    const cassette = JSON.parse(text)
    expect(Object.keys(cassette)).toEqual([...Object.keys(cassette)].sort())
    expect(cassette).toMatchObject({ format: 'openrath/run', version: 1, run: { workflow: 'guard' } })
    expect(text).toContain('"text": "You watch a door."')
    expect(text).toContain('"description": "look"')
    expect(text).not.toContain('"ms"')
  })

  it('keeps no secret', async () => {
    process.env.DOOR_API_KEY = 'a-secret-of-the-door'
    try {
      await record('secret', door(['The key is a-secret-of-the-door.']), go('a-secret-of-the-door?'))
      expect(readFileSync(file('secret'), 'utf8')).not.toContain('a-secret-of-the-door')
      await check('secret', door(nobody), go('a-secret-of-the-door?'))
    } finally {
      delete process.env.DOOR_API_KEY
    }
  })

  it('keeps nothing of a run that failed', async () => {
    const error = await failureOf(record('bad', door([{ error: { status: 400 } }]), go()))
    expect(error.code).toBe('model-rejected')
    expect(existsSync(file('bad'))).toBe(false)
  })

  it('refuses what asks nobody anything, and names that are no files', async () => {
    class Idle extends Workflow {
      forward(session: Session) {
        return session.user('nothing')
      }
    }
    await expect(record('idle', new Idle(), go())).rejects.toThrow('nothing to record')
    for (const name of ['../up', '/etc/passwd', '', '.hidden', 'a//b', '1'])
      await expect(record(name, door(looks), go()), name).rejects.toThrow('is named like its file')
  })
})

describe('a file', () => {
  it('of a newer version, or of something else, is refused by name', async () => {
    mkdirSync(kept())
    const contents: [string, string][] = [
      ['{', 'is not JSON'],
      ['{"format":"other"}', 'its format is "other"'],
      ['{"format":"openrath/run","version":2}', 'has version 2'],
    ]
    for (const [content, message] of contents) {
      writeFileSync(file('odd'), content)
      await expect(check('odd', door(nobody), go())).rejects.toThrow(message)
    }
  })

  it('fails with what the workflow does not ask for any more, though it ends the same', async () => {
    class Mailing extends Workflow {
      mails = true
      async forward(session: Session) {
        await effect('look', {}, () => 1)
        if (this.mails) await effect('mail', { to: 'ada' }, () => 1)
        return session
      }
    }
    const mailing = new Mailing()
    await record('mails', mailing, go())
    await check('mails', mailing, go())
    mailing.mails = false
    const error = await failureOf(check('mails', mailing, go()))
    expect(error.data).toMatchObject({ cause: 'not asked' })
    expect(error.message).toContain('- Mailing asked for mail {"to":"ada"}\nIf this is meant, record')
  })

  it('in which an outcome is missing is a difference, not an effect done for real', async () => {
    let done = 0
    class Once extends Workflow {
      async forward(session: Session) {
        return session.user(`${await effect('mail', {}, () => ++done)}`)
      }
    }
    await record('once', new Once(), go())
    const cassette = JSON.parse(readFileSync(file('once'), 'utf8'))
    delete cassette.journal[0].outcome
    writeFileSync(file('once'), JSON.stringify(cassette))
    expect((await failureOf(check('once', new Once(), go()))).data).toMatchObject({
      cause: 'missing outcome',
    })
    expect(done).toBe(1)
  })
})
