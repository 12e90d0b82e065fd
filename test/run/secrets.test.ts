import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { dossierOf } from '../../src/evidence/dossier/dossier-of.ts'
import { Agent } from '../../src/flow/agent.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { recordedRuns } from '../../src/testing/recorded-runs.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import type { ToolContext } from '../../src/tool/spec.ts'
import { tool } from '../../src/tool/tool.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { calls, fresh, say } from './journal/make.ts'
import { eventsOf, failureOf } from './make.ts'

const before = 'first-key-of-the-door'
const after = 'another-key-since-monday'

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => {
  folder[Symbol.dispose]()
  delete process.env.DOOR_API_KEY
})

/** The same store as two processes open it, between which the key was changed. */
async function withKey(key: string) {
  const store = await openStore(`sqlite:${folder.path}/rath.db`, { secrets: { DOOR_API_KEY: key } })
  const runtime = createRuntime({ store, workspaces: `${folder.path}/trees` })
  return {
    runtime,
    store,
    [Symbol.asyncDispose]: async () => {
      await runtime.close()
      await store.close()
    },
  }
}

const expectNoKey = (value: unknown) => {
  const text = typeof value === 'string' ? value : inspect(value, { depth: 20 })
  expect(text).not.toContain(before)
  expect(text).not.toContain(after)
}

const door = (key: string, run: (args: unknown) => unknown = () => `opened with ${key}`) =>
  tool({
    name: 'open_door',
    description: `Opens the door whose key is ${key}.`,
    input: { type: 'object', properties: { key: { type: 'string', default: key } } },
    effect: 'pure',
    run,
  })

const guard = (key: string, script: Script, prompt = `The key is ${key}.`) =>
  new Agent(prompt, {
    name: 'guard',
    model: scripted(script),
    tools: [door(key)],
    builtins: false,
    retry: { baseMs: 0 },
    output: {
      type: 'object',
      properties: { said: { type: 'string', description: `Not ${key}.` } },
      required: ['said'],
    },
  })

const answers: Script = [calls('open_door'), '{"said":"done"}']

describe('a run whose key was changed since', () => {
  it('replays: prompts, tools, schemas and results are compared without their secrets', async () => {
    let runId = ''
    {
      await using first = await withKey(before)
      const pending = first.runtime.run(guard(before, answers), say(`Use ${before}.`))
      await pending
      runId = pending.runId
    }
    await using second = await withKey(after)
    const strict = await second.runtime.replay(runId, guard(after, []))
    expect(strict).toMatchObject({ ok: true, status: 'done' })
    const tools = await second.runtime.replay(runId, guard(after, []), { mode: 'tools' })
    expect(tools).toMatchObject({ ok: true, tools: [{ tool: 'open_door', same: true }] })
    expectNoKey([strict, tools])
  })

  it('keeps its prompt under the digest of what is kept, whatever the key was', async () => {
    const ids: string[][] = []
    for (const key of [before, after]) {
      const { runtime, store } = await fresh({ secrets: { DOOR_API_KEY: key } })
      const out = await runtime.run(guard(key, answers), say())
      const prompt = out.chunks.findLast(chunk => chunk.kind === 'assistant')?.prompt
      ids.push([prompt as string])
      expect((await store.sessions.get(`prompt-${prompt}`)).chunks.at(0)?.text).toBe(
        'The key is [redacted:DOOR_API_KEY].',
      )
    }
    expect(ids[0]).toEqual(ids[1])
  })

  it('resumes: nothing that is on record is asked for again', async () => {
    const crash = new Error('cut off')
    class Work extends Workflow {
      agent: Agent
      readonly fails: boolean
      constructor(key: string, script: Script, fails: boolean) {
        super()
        this.agent = guard(key, script)
        this.fails = fails
      }
      async forward(session: Session) {
        const done = await this.agent(session)
        if (this.fails) throw crash
        return done
      }
    }
    let runId = ''
    {
      await using first = await withKey(before)
      const pending = first.runtime.run(new Work(before, answers, true), say())
      await failureOf(pending)
      runId = pending.runId
    }
    await using second = await withKey(after)
    const out = await second.runtime.resume(runId, new Work(after, [], false))
    expect(out.text).toBe('{"said":"done"}')
  })

  it('diverges where something else changed, and the difference shows neither key', async () => {
    let runId = ''
    {
      await using first = await withKey(before)
      const pending = first.runtime.run(guard(before, answers), say())
      await pending
      runId = pending.runId
    }
    await using second = await withKey(after)
    const report = await second.runtime.replay(runId, guard(after, [], `Be kind. The key is ${after}.`))
    expect(report.divergence?.cause).toBe('other prompt')
    expect(report.divergence?.diff).toContain('+Be kind. The key is [redacted:DOOR_API_KEY].')
    const other = new Agent(`The key is ${after}.`, {
      name: 'guard',
      model: scripted([]),
      tools: [{ ...door(after), description: `It is ${after}.` }],
      builtins: false,
    })
    const tools = await second.runtime.replay(runId, other)
    expect(tools.divergence?.diff).toContain('It is [redacted:DOOR_API_KEY].')
    expectNoKey([report, tools, tools.divergence?.message, tools.error?.message])
  })

  it('is compared with the tools of today: a result that differs is shown without the key', async () => {
    const { runtime } = await fresh({ secrets: { DOOR_API_KEY: before } })
    let n = 0
    const agent = new Agent('Be brief.', {
      model: scripted([calls('open_door'), 'ok']),
      tools: [door(before, () => `${before} ${n++}`)],
      builtins: false,
    })
    const pending = runtime.run(agent, say())
    await pending
    const report = await runtime.replay(pending.runId, agent, { mode: 'tools' })
    expect(report).toMatchObject({
      ok: false,
      tools: [{ same: false, now: { value: '[redacted:DOOR_API_KEY] 1' } }],
    })
    expectNoKey(report)
  })

  it('replays a selector and a fetch with the key in what they are shown and send', async () => {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.end('fine'))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    class Triage extends Workflow {
      selector: Selector
      one: Agent
      readonly key: string
      constructor(key: string, script: Script) {
        super()
        this.key = key
        this.selector = new Selector({ model: scripted(script) })
        this.one = new Agent('Be brief.', { model: scripted(['one']), builtins: false, name: 'one' })
        this.one.description = `Knows ${key}.`
      }
      async forward(session: Session, { fetch }: ForwardContext) {
        await fetch(`http://127.0.0.1:${port}/`, { method: 'PUT', body: `key=${this.key}` })
        const next = await this.selector(session, this.one)
        return next(session)
      }
    }
    try {
      let runId = ''
      {
        await using first = await withKey(before)
        const pending = first.runtime.run(new Triage(before, ['{"reason":"r","choice":"one"}']), say())
        await pending
        runId = pending.runId
      }
      await using second = await withKey(after)
      expect(await second.runtime.replay(runId, new Triage(after, []))).toMatchObject({ ok: true })
    } finally {
      server.close()
    }
  })
})

describe('recorded runs', () => {
  const runs = (record = '') =>
    recordedRuns(`${folder.path}/runs`, { record, runtime: { workspaces: `${folder.path}/trees` } })

  it('pass with another key, and fail without showing one', async () => {
    process.env.DOOR_API_KEY = before
    await runs('1').check('guard', guard(before, answers), say(`Use ${before}.`))
    expectNoKey(readFileSync(`${folder.path}/runs/guard.json`, 'utf8'))
    process.env.DOOR_API_KEY = after
    await runs().check('guard', guard(after, []), say(`Use ${after}.`))
    const failures = [
      () => runs().check('guard', guard(after, [], `Other. ${after}`), say(`Use ${after}.`)),
      () => runs().check('guard', guard(after, []), say(`Do not use ${after}.`)),
    ]
    for (const failing of failures) {
      const error = await failureOf(failing())
      expect(error.code).toBe('replay-diverged')
      expect(error.message).toContain('[redacted:DOOR_API_KEY]')
      expectNoKey(error)
    }
  })
})

describe('what leaves a run', () => {
  it('an error, its cause and its stack hold no key, and the class of the error stays', async () => {
    class Refused extends Error {
      readonly key = before
    }
    class Work extends Workflow {
      async forward(session: Session): Promise<Session> {
        await new Agent('Be brief.', { model: scripted(['x']), builtins: false })(session)
        throw new RathError('tool-failed', `cannot use ${before}`, {
          cause: new Refused(`the server says ${before}`),
          data: { key: before },
        })
      }
    }
    const { runtime } = await fresh({ secrets: { DOOR_API_KEY: before } })
    const events: unknown[] = []
    const error = await failureOf(runtime.run(new Work(), say(), { onEvent: event => events.push(event) }))
    expect(error).toBeInstanceOf(RathError)
    expect(error.cause).toBeInstanceOf(Refused)
    expect(error).toMatchObject({ code: 'tool-failed', message: 'cannot use [redacted:DOOR_API_KEY]' })
    expect(error.session.length).toBeGreaterThan(0)
    expect(error.stack).toContain('secrets.test.ts')
    expectNoKey([error, error.stack, (error.cause as Error).stack, events])
  })

  it('events hold no key, also when it comes in pieces', async () => {
    const { runtime } = await fresh({ secrets: { DOOR_API_KEY: before } })
    const pieces = ['Take first', '-key-of', '-the-door', ', not first', '-class', ', and fir']
    const agent = new Agent('Be brief.', {
      model: scripted([
        { error: { status: 503, message: `overloaded, ${before}` } },
        { toolCalls: [{ name: 'open_door', args: { key: before } }] },
        { text: pieces.join(''), deltas: pieces },
      ]),
      tools: [
        {
          ...door(before),
          run: (_: unknown, { progress }: ToolContext) => {
            progress({ at: before })
            return before
          },
        },
      ],
      builtins: false,
      retry: { baseMs: 0 },
    })
    const events = await eventsOf(runtime.run(agent, say()))
    const text = events.flatMap(event => (event.type === 'text-delta' ? [event.text] : []))
    expect(text.join('')).toBe('Take [redacted:DOOR_API_KEY], not first-class, and fir')
    expect(text.length).toBeGreaterThan(3)
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['retry', 'tool-progress']))
    expectNoKey(events)
    expectNoKey(text.join(''))
  })

  it('a dossier shows the files that a run wrote without the key in them', async () => {
    const { runtime, store } = await fresh(
      { secrets: { DOOR_API_KEY: before } },
      { workspaces: `${folder.path}/trees` },
    )
    const content = `${'x = 1\n'.repeat(5)}key = ${before}\n`
    class Writes extends Workflow {
      agent = new Agent('Be brief.', {
        model: scripted([calls('write'), 'done']),
        tools: [write],
        builtins: false,
      })
      async forward(session: Session) {
        return this.agent(session)
      }
    }
    const write = tool({
      name: 'write',
      description: 'Writes the settings.',
      input: { type: 'object' },
      effect: 'workspace',
      run: async (_, { sandbox }) => {
        await (await sandbox).files.write('settings.ini', content)
        return 'written'
      },
    })
    const pending = runtime.run(new Writes(), say().to('local', `${folder.path}/work`))
    await pending
    const dossier = await dossierOf(store, pending.runId, { workspaces: `${folder.path}/trees` })
    expect(dossier.patch.source).toBe('trees')
    expect(dossier.patch.files[0]?.patch?.text).toContain('key = [redacted:DOOR_API_KEY]')
    expectNoKey(JSON.stringify(dossier))
    await runtime.close()
  })
})
