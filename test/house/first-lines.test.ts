import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import {
  Agent,
  configure,
  createRuntime,
  type ModelLike,
  type RathError,
  Selector,
  Session,
  tool,
  Workflow,
} from 'openrath'
import { scripted } from 'openrath/testing'
import { expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

configure({ store: 'memory:' })

const model = (text = 'Hello to you.') => scripted(() => text)

test('a string, or parts, is a user message', async () => {
  const agent = new Agent('You are kind.', { model: model() })
  const answer = await agent('Hello')
  expect(answer.text).toBe('Hello to you.')
  expect(answer.chunks.map(({ kind }) => kind)).toEqual(['user', 'assistant'])
  const seen = await agent([
    { type: 'text', text: 'What is this?' },
    { type: 'image', data: 'aGk=', mediaType: 'image/png' },
  ])
  expect(seen.chunks.at(0)).toMatchObject({ kind: 'user', content: [{ type: 'text' }, { type: 'image' }] })
})

test('a workflow inside another takes one as well', async () => {
  class Review extends Workflow {
    writer = new Agent('Write.', { model: model('A draft.') })
    forward(session: Session) {
      return this.writer(`Write about ${session.chunks.length} chunk.`)
    }
  }
  expect((await new Review()('Go')).text).toBe('A draft.')
})

test('structured output is a property of the call, typed by its schema', async () => {
  const output = z.object({ city: z.string(), people: z.number() })
  const agent = new Agent('Extract.', { model: model('{"city":"Bern","people":134000}'), output })
  const pending = agent('Bern has 134,000 people.')
  const value = await pending.output
  expectTypeOf(value).toEqualTypeOf<{ city: string; people: number }>()
  expect(value).toEqual({ city: 'Bern', people: 134_000 })
  // Awaited as well, the call happens once.
  expect((await pending).length).toBe(2)

  const plain = new Agent('Say.', { model: model() })
  await expect(plain('Hello').output).rejects.toThrow('new Agent(prompt, { output:')
  const broken = new Agent('Say.', { model: scripted([{ error: 'no' }]), output })
  await expect(broken('Hello').output).rejects.toMatchObject({ code: 'model-rejected' })
})

test('the built-in tools are offered to sessions that are placed, and to others when asked for', async () => {
  const offered = async (session: Session, builtins?: boolean) => {
    const seen = scripted(() => 'Done.')
    const own = tool({ name: 'add', description: 'Adds.', input: z.object({}), run: () => 1 })
    await using runtime = createRuntime({ store: 'memory:' })
    await runtime.run(
      new Agent('Work.', { model: seen, tools: [own], ...(builtins !== undefined && { builtins }) }),
      session,
    )
    return seen.calls[0]?.tools.map(({ name }) => name)
  }
  const placed = () => Session.fromUserMessage('hi').to('local', import.meta.dirname)
  const plain = () => Session.fromUserMessage('hi')
  // Results of tools may be long, and read_tool_result reads on in them.
  expect(await offered(plain())).toEqual(['add', 'read_tool_result'])
  expect(await offered(plain(), true)).toHaveLength(10)
  expect(await offered(placed())).toHaveLength(10)
  expect(await offered(placed(), false)).toEqual(['add', 'read_tool_result'])
  const seen = scripted(() => 'Hello.')
  await new Agent('You are kind.', { model: seen })('hi')
  expect(seen.calls[0]?.tools).toEqual([])
})

test('a selector offers workflows by the names that people gave them', async () => {
  const described = (description: string) =>
    new Agent(description, { model: model(description), description })
  const asked = scripted(() => '{"reason":"money","choice":"billing"}')
  class Desk extends Workflow {
    selector = new Selector({ model: asked })
    billing = described('Answers about money.')
    technical = described('Answers about machines.')
    async forward(session: Session) {
      return (await this.selector(session, this.billing, this.technical))(session)
    }
  }
  const routed = await new Desk()('My invoice is wrong.')
  expect(routed.text).toBe('Answers about money.')
  expect(routed.chunks.find(chunk => chunk.kind === 'route')).toMatchObject({ choice: 'billing' })

  const [billing, technical] = [described('Answers about money.'), described('Answers about machines.')]
  const next = await new Selector({ model: asked })('My invoice is wrong.', { billing, technical })
  expect((await next('My invoice is wrong.')).text).toBe('Answers about money.')
})

test('the first line of other libraries gets an error that shows ours', () => {
  const habits: [unknown, unknown, string][] = [
    [
      { instructions: 'Be brief.', model: 'openai/gpt-5.5' },
      undefined,
      'new Agent("Be brief.", { model: "openai/gpt-5.5" })',
    ],
    [{ name: 'Helper', system: 'Be brief.' }, undefined, 'new Agent("Be brief.", { name: "Helper" })'],
    [undefined, undefined, 'new Agent("You are …")'],
    ['Be brief.', { maxTurns: 3 }, 'maxTurns is maxRounds'],
    ['Be brief.', { temperature: 0 }, 'new Provider({'],
    ['Be brief.', { outputType: {} }, 'outputType is output'],
  ]
  for (const [prompt, options, line] of habits)
    expect(() => new Agent(prompt as string, options as never)).toThrow(line)
})

test('a model of a provider whose package is not there says what to install and what to write', async () => {
  const ask = (name: ModelLike) =>
    new Agent('Say.', { model: name })('Hello').catch(error => error as RathError)
  const error = (await ask('google/gemini-3')) as RathError
  expect(error).toMatchObject({ code: 'unknown-model' })
  expect(error.message).toContain('npm install @ai-sdk/google')
  expect(error.message).toContain("new Agent('…', { model: google('gemini-3') })")
})

test('an error that nobody catches prints its message, code and run, and not a session', () => {
  const program = `
import { Agent, configure } from 'openrath'
import { scripted } from 'openrath/testing'
configure({ store: 'memory:' })
await new Agent('Say.', { model: scripted([{ error: 'no' }]) })('Hello')`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: join(import.meta.dirname, '../..'),
    encoding: 'utf8',
  })
  expect(status).toBe(1)
  expect(stderr).toContain('RathError: ')
  expect(stderr).toContain("code: 'model-rejected'")
  expect(stderr).toMatch(/runId: '[\w-]{36}'/)
  expect(stderr).not.toContain('Session')
})
