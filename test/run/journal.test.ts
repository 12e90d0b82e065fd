import { describe, expect, it } from 'vitest'
import { version } from '../../src/base/version.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { effect, type ForwardContext } from '../../src/run/forward.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { calls, counted, fresh, kindsOf, say } from './journal/make.ts'
import { agentWith, callsEcho, echo, failureOf } from './make.ts'

describe('a run', () => {
  it('has a row with its input, its output and how it ended', async () => {
    const { runtime, store } = await fresh()
    const pending = runtime.run(agentWith(['done']).agent, say())
    const out = await pending
    const row = await store.runs.get(pending.runId)
    expect(row).toMatchObject({
      status: 'done',
      input: pending.lineage.parents[0],
      output: out.id,
      owner: null,
      data: { workflow: 'Agent', format: 2, version },
    })
    expect((await store.sessions.get(row.output as string)).state).toBe(out.state)
  })

  it('ends when another process asks for that, and goes on when it is resumed', async () => {
    const store = await openStore('memory:')
    const runtime = createRuntime({ store, lease: 30 })
    const begun = Promise.withResolvers<void>()
    const slow = agentWith(async () => {
      begun.resolve()
      await new Promise(() => {})
      return ''
    })
    const pending = runtime.run(slow.agent, say())
    await begun.promise
    await createRuntime({ store }).cancel(pending.runId, { by: 'ann', reason: 'the shop is closed' })
    const error = await failureOf(pending)
    expect(error.code).toBe('cancelled')
    expect(error.message).toContain('the shop is closed')
    expect(await store.runs.get(pending.runId)).toMatchObject({ status: 'cancelled', cancel: { by: 'ann' } })
    const out = await runtime.resume(pending.runId, agentWith(['open again']).agent)
    expect(out.text).toBe('open again')
    expect(await store.runs.get(pending.runId)).not.toHaveProperty('cancel')
  })

  it('is not resumed or replayed by a record that no version wrote, and says which entry it is', async () => {
    const { runtime, store } = await fresh()
    const { agent } = agentWith(['done'])
    const pending = runtime.run(agent, say())
    const { id } = await pending
    for (const [request, outcome, missing] of [
      [{ claims: 1 }, { value: 1 }, 'by whom, by which rule and from which state it was asked'],
      [{ request: {}, by: 'a', rule: 'read', state: 's' }, 'fine', 'how the effect ended'],
    ] as const) {
      const run = `damaged ${missing.length}`
      await store.runs.create({
        id: run,
        input: (await store.runs.get(pending.runId)).input as string,
        data: { format: 2 },
      })
      const log = await store.runs.claim(run, 'test', 60_000)
      await log.append([
        { kind: 'put', session: await store.sessions.get(id) },
        { kind: 'intend', entry: { key: 'k1', occurrence: 0, kind: 'model', request } },
        { kind: 'conclude', key: 'k1', occurrence: 0, outcome },
      ])
      await log.release()
      for (const attempt of [() => runtime.resume(run, agent), () => runtime.replay(run, agent)]) {
        const error = await failureOf(attempt())
        expect(error.code).toBe('store-corrupt')
        expect(error.message).toContain(`Entry k1 (model) of run ${run} does not say ${missing}`)
      }
    }
  })

  it('touches no store when it has no effects', async () => {
    const { runtime, store } = await fresh()
    class Quiet extends Workflow {
      forward(session: Session) {
        return session.user('more')
      }
    }
    await runtime.run(new Quiet(), say())
    expect(await store.runs.list()).toEqual([])
  })

  it('writes every effect down with its outcome, in the order asked', async () => {
    const { runtime, store } = await fresh()
    const { agent } = agentWith([callsEcho('x'), 'done'], { tools: [echo] })
    const pending = runtime.run(agent, say())
    await pending
    const entries = (await store.runs.journal(pending.runId)).filter(({ kind }) => kind !== 'definition')
    expect(entries.map(entry => entry.kind)).toEqual(['model', 'tool', 'model'])
    expect(entries[1]).toMatchObject({
      request: {
        by: 'Agent',
        after: { index: 1, kind: 'assistant' },
        rule: 'pure',
        request: { tool: 'echo' },
      },
      outcome: { value: { outcome: { kind: 'value', value: 'x' } } },
    })
    expect(entries.every(entry => entry.outcome !== undefined)).toBe(true)
  })

  it('writes the intent before the effect starts', async () => {
    const { runtime, store } = await fresh()
    let seen: readonly unknown[] = []
    let run = ''
    const look = counted('look', 'external')
    const spy = {
      ...look.tool,
      run: async () => {
        seen = await store.runs.journal(run)
        return 'seen'
      },
    }
    const pending = runtime.run(agentWith([calls('look'), 'done'], { tools: [spy] }).agent, say())
    run = pending.runId
    await pending
    expect(seen.at(-1)).toMatchObject({ kind: 'tool' })
    expect(seen.at(-1)).not.toHaveProperty('outcome')
  })

  it('has its outcome in the store before the next effect and before the call returns', async () => {
    const { runtime, store } = await fresh()
    let run = ''
    const seen: (string | undefined)[] = []
    const { agent } = agentWith(
      async () => {
        const last = (await store.runs.journal(run)).filter(({ kind }) => kind === 'tool').at(-1)
        seen.push(last && JSON.stringify(last.outcome))
        return seen.length === 1 ? callsEcho('x') : 'done'
      },
      { tools: [echo] },
    )
    const pending = runtime.run(agent, say())
    run = pending.runId
    await pending
    expect(seen[1]).toContain('"x"')
  })

  it('keeps the id it was given, and refuses one that exists', async () => {
    const { runtime, store } = await fresh()
    await runtime.run(agentWith(['done']).agent, say(), { id: 'mine' })
    expect((await store.runs.get('mine')).status).toBe('done')
    const error = await failureOf(runtime.run(agentWith(['done']).agent, say(), { id: 'mine' }))
    expect(error.code).toBe('run-exists')
  })

  it('is failed or cancelled when it fails or is cancelled, with the session so far as output', async () => {
    const { runtime, store } = await fresh()
    const pending = runtime.run(agentWith([{ error: { status: 400 } }]).agent, say())
    const error = await failureOf(pending)
    expect(await store.runs.get(pending.runId)).toMatchObject({ status: 'failed', output: error.session.id })
    const late = runtime.run(agentWith([{ text: 'late', delayMs: 60_000 }]).agent, say())
    setImmediate(() => late.cancel('enough'))
    await failureOf(late)
    expect((await store.runs.get(late.runId)).status).toBe('cancelled')
  })
})

describe('effects of one’s own', () => {
  class Mailer extends Workflow {
    sent: string[] = []
    async forward(session: Session, context: ForwardContext) {
      const at = await context.now()
      const [a, b] = [await context.random(), await context.random()]
      const id = await context.id()
      const receipt = await effect('send-mail', { to: 'ada' }, () => {
        this.sent.push('ada')
        return { receipt: `${at}`, a, b, id }
      })
      return session.append({ kind: 'note', name: 'sent', data: receipt }).user(JSON.stringify(receipt))
    }
  }

  it('are recorded, the clock and chance with them, and a replay draws the same', async () => {
    const { runtime, store } = await fresh()
    const mailer = new Mailer()
    const pending = runtime.run(mailer, say())
    const out = await pending
    expect(await kindsOf(store, pending.runId)).toEqual(['now', 'random', 'random', 'id', 'send-mail'])
    const report = await runtime.replay(pending.runId, mailer)
    expect(report).toMatchObject({ ok: true, state: out.state, served: 5 })
    expect(mailer.sent).toEqual(['ada'])
  })

  it('are refused outside a call, and under a name of the runtime', async () => {
    expect(() => effect('send-mail', {}, () => 1)).toThrow('inside the call of a workflow')
    class Wrong extends Workflow {
      async forward(session: Session, { effect: through }: ForwardContext) {
        void through
        await effect('model', {}, () => 1)
        return session
      }
    }
    await expect(new Wrong()(say())).rejects.toThrow('a text of your own')
  })

  it('fail with their own error, and fail the same in a replay', async () => {
    const { runtime } = await fresh()
    class Failing extends Workflow {
      async forward(session: Session) {
        await effect('try', {}, () => Promise.reject(new TypeError('no luck')))
        return session
      }
    }
    const pending = runtime.run(new Failing(), say())
    await expect(pending).rejects.toThrow('no luck')
    const report = await runtime.replay(pending.runId, new Failing())
    expect(report).toMatchObject({ ok: true, status: 'failed', recorded: 'failed' })
    expect(report.error?.message).toContain('no luck')
  })
})

describe('secrets', () => {
  it('are out of keys and outcomes, and the run replays to the same state', async () => {
    const { runtime, store } = await fresh({ secrets: { API_KEY: 'hunter2hunter2' } })
    const leak = counted('leak', 'pure')
    const leaking = { ...leak.tool, run: () => 'the key is hunter2hunter2' }
    const { agent } = agentWith([calls('leak'), 'I saw hunter2hunter2'], { tools: [leaking] })
    const pending = runtime.run(agent, say('my key: hunter2hunter2'))
    const out = await pending
    expect(JSON.stringify([await store.runs.journal(pending.runId), out.toJSONL()])).not.toContain(
      'hunter2hunter2',
    )
    expect(out.text).toBe('I saw [redacted:API_KEY]')
    expect(await runtime.replay(pending.runId, agent)).toMatchObject({ ok: true, state: out.state })
  })

  it('of two machines make the same keys, and code goes on with what was recorded', async () => {
    class Caller extends Workflow {
      readonly secret: string
      constructor(secret: string) {
        super()
        this.secret = secret
      }
      async forward(session: Session) {
        const answer = await effect('call', { header: this.secret }, () => `you sent ${this.secret}`)
        return session.user(`${answer.length} characters`)
      }
    }
    const keys: string[] = []
    for (const secret of ['hunter2hunter2', 'a-longer-secret-of-another-machine']) {
      const { runtime, store } = await fresh({ secrets: { API_KEY: secret } })
      const pending = runtime.run(new Caller(secret), say())
      const out = await pending
      const entries = (await store.runs.journal(pending.runId)).filter(({ kind }) => kind !== 'definition')
      keys.push(...entries.map(({ key }) => key), out.state)
      expect(await runtime.replay(pending.runId, new Caller(secret))).toMatchObject({ ok: true })
    }
    expect(keys.slice(0, 2)).toEqual(keys.slice(2))
  })
})
