import { expect, test } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Selector } from '../../src/flow/selector.ts'
import type { Model } from '../../src/model/spec.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { failureOf } from './make.ts'

const once = { attempts: 1 }

test('the next model answers where one does not, and the record says which and why', async () => {
  const first = scripted([{ error: { status: 503, message: 'down' } }], { id: 'a/one' })
  const second = scripted(['Here I am.'], { id: 'b/two' })
  const agent = new Agent('Answer.', { model: [first, second], retry: once })
  const events: string[] = []
  const session = await agent('Hello', {
    onEvent: event => void (event.type === 'retry' && events.push(`${event.error} ${event.waitMs}`)),
  })
  expect(session.text).toBe('Here I am.')
  expect(session.chunks.at(-1)).toMatchObject({ kind: 'assistant', model: 'b/two' })
  expect(session.chunks.at(-2)).toMatchObject({ kind: 'error', error: 'model-overloaded', attempt: 1 })
  expect(session.chunks.at(-2)?.text).toContain('a/one')
  expect(events).toEqual(['model-overloaded 0'])
})

test('each is as patient as it is told, and the last failure is the one that is thrown', async () => {
  const down = (id: string) => scripted(() => ({ error: { status: 503, message: 'down' } }), { id })
  const [first, second] = [down('a/one'), down('b/two')]
  const agent = new Agent('Answer.', { model: [first, second], retry: { attempts: 2, baseMs: 1 } })
  const error = await failureOf(agent('Hello'))
  expect(error.message).toContain('b/two')
  expect([first.calls.length, second.calls.length]).toEqual([2, 2])
  expect(error.session?.chunks.filter(({ kind }) => kind === 'error')).toHaveLength(4)
})

test('work that is cancelled is taken to nobody else', async () => {
  const stop = new AbortController()
  const first: Model = {
    id: 'a/one',
    answer: () => {
      stop.abort(new Error('enough'))
      return new Promise(() => {})
    },
  }
  const second = scripted(['No.'])
  const error = await failureOf(
    new Agent('Answer.', { model: [first, second] })('Hello', { signal: stop.signal }),
  )
  expect(error.code).toBe('cancelled')
  expect(second.calls).toHaveLength(0)
})

test('an empty list is refused, and selectors take lists too', async () => {
  expect(() => new Agent('Answer.', { model: [] })).toThrow('The list of models is empty')
  const good = new Agent('Answer.', { model: scripted(['Yes.']), description: 'Answers.' })
  const model = [
    scripted([{ error: { status: 503, message: 'down' } }]),
    scripted(['{"choice":"good","reason":"only one"}']),
  ]
  const next = await new Selector({ model, retry: once })('Hello', { good })
  expect((await next('Hello')).text).toBe('Yes.')
})

const silent = (said: readonly string[] = []): Model => ({
  id: 'slow/model',
  answer: (_, { onDelta }) => {
    for (const text of said) onDelta?.({ type: 'text-delta', text })
    return new Promise(() => {})
  },
})

const slow: [name: string, said: string[], timeout: object][] = [
  ['firstToken', [], { firstToken: 20 }],
  ['betweenTokens', ['Well, '], { firstToken: 20, betweenTokens: 30 }],
  ['total', ['Well, '], { firstToken: 10, betweenTokens: 1e9, total: 40 }],
]
for (const [name, said, timeout] of slow) {
  test(`a model that is silent is waited for until ${name} is over`, async () => {
    const agent = new Agent('Answer.', { model: silent(said), retry: { attempts: 1, timeout } })
    const error = await failureOf(agent('Hello', { onEvent: () => {} }))
    expect(error).toMatchObject({ code: 'model-timeout', data: { timeout: name } })
    expect(error.message).toContain(`retry.timeout.${name}`)
  })
}

test('without anybody following, the whole answer has a limit; the next model may still answer', async () => {
  const timeout = { total: 20 }
  const model = [silent(), scripted(['Hello.'])]
  const session = await new Agent('Answer.', { model, retry: { attempts: 1, timeout } })('Hello')
  expect(session.text).toBe('Hello.')
  await expect(new Agent('Answer.', { model, retry: { timeout: { total: 0 } } })('Hello')).rejects.toThrow(
    'retry.timeout.total must be milliseconds above 0',
  )
})
