import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Compressor } from '../../src/flow/compressor.ts'
import { restore } from '../../src/flow/restore.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { calls } from './journal/make.ts'
import { agentWith, failureOf } from './make.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder[Symbol.dispose]())

const path = () => `${folder.path}/rath.db`

/** A runtime as another process would open it. */
async function opened(secrets: Record<string, string> = {}) {
  const store = await openStore(`sqlite:${path()}`, { secrets })
  const runtime = createRuntime({ store, workspaces: false })
  return { store, runtime, [Symbol.asyncDispose]: () => store.close() }
}

/** Somebody with an editor for databases. */
function alter(from = 'pay 100', to = 'pay 999'): void {
  const db = new DatabaseSync(path())
  const { changes } = db.prepare('UPDATE chunk SET body = replace(body, ?, ?)').run(from, to)
  db.close()
  expect(Number(changes)).toBeGreaterThan(0)
}

const record = () =>
  Session.fromUserMessage('Please pay 100.').append({ kind: 'assistant', text: 'Shall I?' }).user('Yes.')

/** The session in the store, changed behind its back. */
async function altered(session = record()): Promise<string> {
  {
    await using place = await opened()
    await place.store.sessions.put(session)
  }
  alter()
  return session.id
}

const entries: [string, (session: Session) => Session | Promise<Session>][] = [
  ['itself', session => session],
  ['continued', session => session.user('Now.')],
  ['placed', session => session.to('local', folder.path)],
  ['forked', session => session.fork('b').user('Now.')],
  ['detached', session => session.detach()],
  ['rewound', session => session.rewind(1).user('Now.')],
  ['merged', session => session.fork().user('A').merge(session.fork().user('B'))],
  ['merged into another one', session => Session.fromUserMessage('Hello.').merge(session)],
  [
    'merged by a policy',
    session => Session.fromUserMessage('Hello.').merge(session, { policy: (_, [, b]) => b?.chunks ?? [] }),
  ],
  [
    'restored',
    async session =>
      restore(
        session
          .rewind(0)
          .append({ kind: 'assistant', text: 'x' })
          .append({ kind: 'compress', replaced: [session.chunks.at(0)?.id as string], summary: 's' })
          .user('more'),
      ),
  ],
]

describe('a session that was altered in its store', () => {
  it.each(entries)('is shown to no model: %s', async (_, make) => {
    const id = await altered()
    await using place = await opened()
    const { agent, model } = agentWith(['no'])
    const session = await make(await place.store.sessions.get(id))
    const error = await failureOf(place.runtime.run(agent, session))
    expect(error).toMatchObject({ code: 'session-altered', data: { chunk: expect.any(String) } })
    expect(error.message).toContain('chunk 0 (user) is recorded as')
    expect(model.calls).toHaveLength(0)
  })

  it('is refused by every layer that acts on it, pending ones and memories included', async () => {
    const id = await altered()
    await using place = await opened()
    const { runtime, store } = place
    const session = await store.sessions.get(id)
    class Pass extends Workflow {
      async forward(given: Session) {
        return given.user('through')
      }
    }
    const nobody = scripted([])
    class Choose extends Workflow {
      selector = new Selector({ model: nobody })
      one = agentWith([], { name: 'one', description: 'Does it.' }).agent
      async forward(given: Session) {
        return (await this.selector(given, this.one))(given)
      }
    }
    const pending = runtime.run(new Pass(), session)
    for (const act of [
      () => runtime.run(new Choose(), session),
      () => runtime.run(new Compressor('Short.', { model: nobody, keep: 0 }), session),
      () => runtime.run(agentWith([]).agent, pending as never),
      () => new Agent('Remember.', { model: nobody, memory: 'local' }).commit(session, { model: nobody }),
    ] as (() => Promise<unknown>)[])
      await expect(act()).rejects.toMatchObject({ code: 'session-altered' })
    expect(nobody.calls).toHaveLength(0)
  })

  it('continues from before the altered chunk, and where only what came later was altered', async () => {
    const id = await altered(
      Session.fromUserMessage('Hello.').append({ kind: 'assistant', text: 'Hi.' }).user('Please pay 100.'),
    )
    await using place = await opened()
    const session = await place.store.sessions.get(id)
    const out = await place.runtime.run(agentWith(['fine']).agent, session.rewind(1).user('And now?'))
    expect(out.text).toBe('fine')
    expect(out.verify().ok).toBe(true)
  })

  it('is gone ahead with where that is said, and the record says so', async () => {
    const id = await altered()
    let result = ''
    {
      await using place = await opened()
      const { agent, model } = agentWith(['paid', 'again'])
      const session = await place.store.sessions.get(id)
      const out = await place.runtime.run(agent, session, { altered: 'accept' })
      expect(JSON.stringify(model.calls[0]?.messages)).toContain('pay 999')
      expect(out.verify().ok).toBe(true)
      const note = out.chunks.find(chunk => chunk.kind === 'note')
      expect(note).toMatchObject({ name: 'altered', data: { session: id, chunk: session.chunks.at(0)?.id } })
      expect((await place.runtime.run(agent, out.user('Again.'))).text).toBe('again')
      result = out.id
    }
    await using later = await opened()
    const kept = await later.store.sessions.get(result)
    expect(kept.verify().ok).toBe(true)
    expect((await later.store.sessions.get(kept.lineage.parents[0] as string)).lineage).toMatchObject({
      operation: 'accept',
      extras: { altered: id },
    })
    expect((await later.runtime.run(agentWith(['third']).agent, kept.user('And?'))).text).toBe('third')
  })

  it('is not altered by an option that is mistyped', async () => {
    const { agent } = agentWith([])
    expect(() => agent(record(), { altered: 'yes' as never })).toThrow(/'refuse' or 'accept'/)
  })

  it('stops a resume before the run is claimed, which then waits as it did, and a replay', async () => {
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      approval: true,
      run: () => 'paid',
    })
    const payer = (script: Script) => agentWith(script, { tools: [pay], name: 'payer' }).agent
    let runId = ''
    {
      await using place = await opened()
      const pending = place.runtime.run(payer([calls('pay')]), record())
      expect((await failureOf(pending)).code).toBe('run-waiting')
      runId = pending.runId
    }
    alter()
    await using place = await opened()
    const { runtime } = place
    await expect(runtime.resume(runId, payer([]))).rejects.toMatchObject({ code: 'session-altered' })
    expect((await runtime.runs.get(runId)).status).toBe('waiting')
    await expect(runtime.replay(runId, payer([]))).rejects.toMatchObject({ code: 'session-altered' })
  })

  it('whose payload lies out of line is noticed too', async () => {
    const long = 'pay 100 '.repeat(4_000)
    const id = await altered(Session.fromUserMessage('Please pay 100.').user(long))
    await using place = await opened()
    const session = await place.store.sessions.get(id).catch(error => error)
    // A blob is refused when it is read; what names it is looked at when somebody acts.
    if (!(session instanceof Session)) expect(session.code).toBe('store-corrupt')
    else
      await expect(place.runtime.run(agentWith([]).agent, session)).rejects.toMatchObject({
        code: 'session-altered',
      })
  })
})

it('a merge with an altered session is gone ahead with from the first chunk that came of it', async () => {
  const id = await altered()
  await using place = await opened()
  const merged = await Session.fromUserMessage('Hello.').merge(await place.store.sessions.get(id))
  const out = await place.runtime.run(agentWith(['well']).agent, merged, { altered: 'accept' })
  expect(out.verify().ok).toBe(true)
  expect(out.chunks.map(({ kind }) => kind)).toEqual([
    ...merged.chunks.map(({ kind }) => kind),
    'note',
    'assistant',
  ])
  expect((await place.runtime.run(agentWith(['on']).agent, out.user('On.'))).text).toBe('on')
})

describe('a session read from a file', () => {
  const file = () => record().toJSONL()

  it('that was altered is shown to no model, also when a secret in it makes the store write it again', async () => {
    for (const secrets of [{}, { PAY_KEY: 'Please pay 999' }] as Record<string, string>[]) {
      await using place = await opened(secrets)
      const session = Session.fromJSONL(file().replace('pay 100', 'pay 999'))
      const { agent, model } = agentWith(['no'])
      await expect(place.runtime.run(agent, session)).rejects.toMatchObject({ code: 'session-altered' })
      await expect(place.store.sessions.put(session)).rejects.toMatchObject({ code: 'invalid-chunk' })
      expect(model.calls).toHaveLength(0)
      const out = await place.runtime.run(agentWith(['well']).agent, session, { altered: 'accept' })
      expect(out.verify().ok).toBe(true)
    }
  })

  it('that breaks off is refused until somebody says otherwise, however it is continued', async () => {
    await using place = await opened()
    const cut = Session.fromJSONL(file().split('\n').slice(0, 3).join('\n'))
    for (const session of [cut, cut.user('Go on.'), cut.fork(), cut.to('local', folder.path)])
      await expect(place.runtime.run(agentWith([]).agent, session)).rejects.toMatchObject({
        code: 'session-altered',
        message: expect.stringContaining('the end record is missing'),
      })
    const out = await place.runtime.run(agentWith(['well']).agent, cut, { altered: 'accept' })
    expect(out.chunks.find(chunk => chunk.kind === 'note')).toMatchObject({ name: 'altered' })
    expect((await place.runtime.run(agentWith(['well']).agent, cut.rewind(0))).text).toBe('well')
  })

  it('that is whole goes on', async () => {
    await using place = await opened()
    expect((await place.runtime.run(agentWith(['well']).agent, Session.fromJSONL(file()))).text).toBe('well')
  })
})
