import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Compressor } from '../../src/flow/compressor.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import type { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { ask, failureOf } from './make.ts'

const name = 'openai/gpt-5.5'
const store = await openStore('memory:')

describe('a model that nothing here knows', () => {
  const variables = ['OPENAI_DEFAULT_MODEL', 'ANTHROPIC_DEFAULT_MODEL', 'OPENRATH_HOME']
  const before = Object.fromEntries(variables.map(name => [name, process.env[name]]))
  const home = mkdtempSync(join(tmpdir(), 'openrath-home-'))
  beforeEach(() => {
    for (const name of variables) delete process.env[name]
    process.env.OPENRATH_HOME = home
  })
  afterEach(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })

  class Flow extends Workflow {
    readonly agent = new Agent('Answer.', { builtins: false })
    readonly selector = new Selector()
    readonly compressor = new Compressor('Summarise.')
    forward(session: Session) {
      return this.agent(session)
    }
  }

  it('is missed by the first call and by compile, and not where it is named', async () => {
    const flow = new Flow()
    expect(String(flow)).toContain('(agent): Agent(default model)')
    expect(flow.compile().validate()).toMatchObject(
      ['agent', 'selector', 'compressor'].map(path => ({ path, code: 'unknown-model' })),
    )
    const error = await failureOf(createRuntime({ store }).run(flow, ask()))
    expect(error).toMatchObject({
      code: 'unknown-model',
      message: expect.stringContaining('No model was named'),
    })
  })

  it('may be given between the two: by to, by the runtime, or by the environment', async () => {
    expect((await createRuntime({ store }).run(new Flow().to(scripted(['a'])), ask())).text).toBe('a')
    const models = { '': scripted(['b']) }
    expect((await createRuntime({ store, models }).run(new Flow(), ask())).text).toBe('b')
    const flow = new Flow()
    process.env.OPENAI_DEFAULT_MODEL = 'gpt-5.5'
    expect(flow.agent.model.id).toBe('openai/gpt-5.5')
  })

  it('is looked up at the first call in the models of a runtime too', async () => {
    const runtime = createRuntime({ store, models: { fast: 'nowhere' } })
    const agent = new Agent('Answer.', { model: 'fast', builtins: false })
    expect(await failureOf(runtime.run(agent, ask()))).toMatchObject({ code: 'unknown-model' })
  })
})

describe('the models of a runtime', () => {
  it('take the place of what a name stands for otherwise, and only there', async () => {
    const mine = scripted(['from the script'], { id: 'mine/one' })
    const other = scripted(['from another'], { id: 'mine/two' })
    const agent = new Agent('Answer.', { model: name, builtins: false })
    const first = await createRuntime({ store, models: { [name]: mine } }).run(agent, ask())
    const second = await createRuntime({ store, models: { [name]: other } }).run(agent, ask())
    expect([first.text, second.text]).toEqual(['from the script', 'from another'])
    expect(first.chunks.at(-1)).toMatchObject({ kind: 'assistant', model: 'mine/one' })
    expect(agent.model.id).toBe(name)
  })

  it('may have names that nothing else knows, and are missed when they are first asked for', async () => {
    const agent = new Agent('Answer.', { model: 'fast', builtins: false })
    const runtime = createRuntime({ store, models: { fast: scripted(['quick']) } })
    expect((await runtime.run(agent, ask())).text).toBe('quick')
    const error = await failureOf(createRuntime({ store }).run(agent, ask()))
    expect(error).toMatchObject({ code: 'unknown-model', message: expect.stringContaining('"fast"') })
    expect(agent.compile().validate()).toEqual([
      expect.objectContaining({ message: expect.stringContaining('"fast"') }),
    ])
  })

  it('answer for selectors and compressors too', async () => {
    class Flow extends Workflow {
      readonly selector = new Selector({ model: 'router' })
      readonly compressor = new Compressor('Summarise.', { model: 'writer' })
      readonly agent = new Agent('Answer.', { model: 'writer', builtins: false })
      async forward(session: Session) {
        this.agent.description = 'answers'
        const next = await this.selector(session, this.agent)
        return this.compressor(await next(session))
      }
    }
    const models = {
      router: scripted(['{"choice":"agent","reason":"it fits"}'], { id: 'mine/router' }),
      writer: scripted(['An answer.', 'A summary.']),
    }
    const out = await createRuntime({ store, models }).run(new Flow(), ask())
    expect(out.chunks.find(chunk => chunk.kind === 'route')).toMatchObject({ model: 'mine/router' })
    expect(out.chunks.find(chunk => chunk.kind === 'compress')).toMatchObject({ text: 'A summary.' })
    models.router.done()
    models.writer.done()
  })

  it('leave objects alone: a model that was handed over is the one that is asked', async () => {
    const handed = scripted(['mine'], { id: 'fast' })
    const agent = new Agent('Answer.', { model: handed, builtins: false })
    expect(
      (await createRuntime({ store, models: { fast: scripted(['other']) } }).run(agent, ask())).text,
    ).toBe('mine')
  })

  it('are checked when the runtime is made', () => {
    expect(() => createRuntime({ models: [scripted([])] as never })).toThrow('by name')
    expect(() => createRuntime({ models: { fast: 7 as never } })).toThrow('7 is not a model')
  })
})
