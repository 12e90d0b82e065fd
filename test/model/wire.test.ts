import { describe, expect, test } from 'vitest'
import { Provider } from '../../src/model/provider.ts'
import { resolveModel } from '../../src/model/resolve.ts'
import { withRetry } from '../../src/model/retry.ts'
import { failure, generate, key, type Protocol, protocolNames, protocols, request, stream } from './ask.ts'
import { type Play, wireServer } from './wire-server.ts'

const sentence = 'The door is open — 門は開いている 🚪.'
const tools = [{ name: 'now', description: 'The time.', parameters: { type: 'object', properties: {} } }]

for (const protocol of protocolNames) {
  const served = async (...plays: Play[]) => {
    const server = await wireServer(...plays)
    return { server, model: protocols[protocol](server.url) }
  }
  const play = (name: string, more: Play = {}): Play => ({ file: `${protocol}/${name}.txt`, ...more })

  describe(`over the wire of ${protocol}`, () => {
    test('text arrives in pieces and whole, however the bytes are cut', async () => {
      for (const seed of [1, 2, 3, 4, 5]) {
        const { server, model } = await served(play('text', { seed }))
        await using _ = server
        const { answer, deltas, streamed } = await stream(model)
        const said = answer.content
          .map(part => (part.type === 'text' ? part.text : `<${part.type}>`))
          .join('')
        expect(said, `seed ${seed}`).toBe(protocol === 'gateway' ? 'It is open.' : sentence)
        expect(streamed).toBe(said)
        expect(deltas.length).toBeGreaterThan(1)
        expect(answer.finishReason).toBe('stop')
      }
    })

    test('an empty answer is an answer', async () => {
      const { server, model } = await served(play('empty'))
      await using _ = server
      const { answer, deltas } = await stream(model)
      expect(answer).toMatchObject({ content: [], finishReason: 'stop' })
      expect(deltas).toEqual([])
    })

    test('an answer that was too long, and one that was filtered, say so', async () => {
      const { server, model } = await served(play('length'), play('content-filter'))
      await using _ = server
      expect((await stream(model)).answer.finishReason).toBe('length')
      expect((await stream(model)).answer.finishReason).toBe('content-filter')
    })

    test('arguments that are not JSON stay as the model wrote them', async () => {
      const { server, model } = await served(play('malformed-arguments'))
      await using _ = server
      const { answer } = await stream(model, { tools })
      const raw = protocol === 'gateway' ? "{path: 'a.txt'}" : '{"path": "a.txt", "content": "half'
      expect(answer.content).toMatchObject([{ type: 'tool-call', name: 'write_file', args: raw }])
      expect(answer.finishReason).toBe(protocol === 'anthropic' ? 'length' : 'tool-calls')
    })

    test('a stream that ends, or breaks, in the middle is worth another try', async () => {
      const { server, model } = await served(play('cut'), play('cut', { ending: 'break' }))
      await using _ = server
      for (let i = 0; i < 2; i++) {
        const error = await failure(stream(model))
        expect(error).toMatchObject({ code: 'model-broken-stream', retry: 'now', blame: 'model' })
      }
    })

    test('a connection that breaks before anything came is worth another try', async () => {
      const { server, model } = await served({ file: `${protocol}/empty.txt`, body: '', ending: 'break' })
      await using _ = server
      const error = await failure(stream(model))
      expect(['model-unreachable', 'model-broken-stream']).toContain(error.code)
      expect(error.retry).not.toBe('never')
    })

    test('a 200 that turns into an error is an error', async () => {
      const { server, model } = await served(play('error-event'))
      await using _ = server
      const error = await failure(stream(model))
      expect(error).toMatchObject({ code: 'model-overloaded', retry: 'after' })
      expect(error.message).toMatch(/Overloaded|failed to generate|had an error|Provider returned error/)
    })

    test('a 429 says how long to wait, and the answer after it is the answer', async () => {
      const body = JSON.stringify({
        type: 'error',
        error: { type: 'rate_limit_error', message: 'Slow down.' },
      })
      const { server, model } = await served(
        { status: 429, body, headers: { 'retry-after': '7' } },
        { status: 503, body },
        play('text'),
      )
      await using _ = server
      const waits: [string, number, number][] = []
      const { answer } = await withRetry(
        () => stream(model),
        { baseMs: 100 },
        {
          random: () => 0.5,
          sleep: async () => {},
          onRetry: (error, attempt, waitMs) => waits.push([error.code, attempt, waitMs]),
        },
      )
      expect(answer.finishReason).toBe('stop')
      expect(waits).toEqual([
        ['model-rate-limited', 1, 7050],
        ['model-overloaded', 2, 100],
      ])
      // Three requests in all: the packages did not retry on their own.
      expect(server.seen).toHaveLength(3)
    })

    test('refusals for good name the status and never the key', async () => {
      const refusal = (status: number, message: string) => ({
        status,
        body: JSON.stringify({ error: { message, type: 'invalid_request_error' } }),
      })
      const { server, model } = await served(
        refusal(401, `Incorrect API key provided: ${key}.`),
        refusal(404, 'No such model.'),
        refusal(400, 'Too many tokens.'),
      )
      await using _ = server
      const codes = ['model-unauthorized', 'model-missing', 'model-rejected']
      for (const [i, status] of [401, 404, 400].entries()) {
        const error = await failure(stream(model))
        expect(error).toMatchObject({ code: codes[i], retry: 'never', data: { status } })
        expect(`${error.message}${JSON.stringify(error.data)}${error.cause}`).not.toContain(key)
      }
    })

    test('an abort closes the connection, and the server sees it', async () => {
      const { server, model } = await served(play('cut', { ending: 'hang' }))
      await using _ = server
      const abort = new AbortController()
      const reason = new Error('enough')
      const asked = model.answer(request(), {
        signal: abort.signal,
        onDelta: () => queueMicrotask(() => abort.abort(reason)),
      })
      const error = await failure(asked)
      expect(error).toMatchObject({ code: 'cancelled', cause: reason })
      await server.seen[0]?.closed
    })

    test('an abort before the first byte closes the connection too', async () => {
      const { server, model } = await served({ body: '', ending: 'hang' })
      await using _ = server
      for (const onDelta of [undefined, () => {}]) {
        const abort = new AbortController()
        const asked = failure(model.answer(request(), { signal: abort.signal, onDelta }))
        while (server.seen.length === 0) await new Promise(setImmediate)
        abort.abort()
        expect((await asked).code).toBe('cancelled')
        await server.seen.pop()?.closed
      }
    })
  })
}

describe('an answer in one piece', () => {
  for (const protocol of ['openai-chat', 'openai-responses', 'anthropic'] satisfies Protocol[]) {
    test(`of ${protocol} is read when nobody listens to pieces`, async () => {
      await using server = await wireServer({ file: `${protocol}/text.json` })
      const answer = await generate(protocols[protocol](server.url))
      expect(answer.content.at(-1)).toMatchObject({ type: 'text', text: 'The door is open.' })
      expect(answer.finishReason).toBe('stop')
      expect(server.seen[0]?.body.stream).toBeFalsy()
    })
  }

  test('that is not what the protocol says is malformed, and one that breaks off is broken', async () => {
    await using server = await wireServer(
      { body: '<html>Welcome to nginx</html>' },
      { body: '{"choices": [', ending: 'break' },
    )
    const model = protocols.gateway(server.url)
    expect((await failure(generate(model))).code).toBe('model-malformed')
    expect((await failure(generate(model))).code).toBe('model-broken-stream')
  })
})

test('nobody listening is unreachable', async () => {
  const server = await wireServer({})
  await server[Symbol.asyncDispose]()
  for (const protocol of protocolNames) {
    const error = await failure(stream(protocols[protocol](server.url)))
    expect(error).toMatchObject({ code: 'model-unreachable', retry: 'after' })
  }
})

test('a key is in no error, though the server quotes it or no header can hold it', async () => {
  const message = 'No account has xyz+0123456789, nor team-9876543210.'
  await using server = await wireServer({ status: 400, body: JSON.stringify({ error: { message } }) })
  const headers = { 'x-team-token': 'team-9876543210' }
  for (const apiKey of ['xyz+0123456789', 'xyz+01234\n56789']) {
    const provider = new Provider({ model: 'm', kind: 'anthropic', apiKey, baseURL: server.url, headers })
    const error = await failure(generate(resolveModel(provider)))
    expect(error.message).not.toMatch(/56789|team-9876543210/)
  }
  expect(server.seen).toHaveLength(1)
})
