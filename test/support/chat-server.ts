import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/** A request of chat completions, as far as tests look at it. */
export interface Asked {
  readonly model: string
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
  readonly tools?: readonly {
    readonly function: { readonly name: string; readonly parameters: Schema }
  }[]
  readonly response_format?: { readonly json_schema?: { readonly schema: Schema } }
}

export type Schema = { readonly [name: string]: unknown }

export interface Call {
  readonly name: string
  readonly args: object
}

/** What a model says: a text, or calls of tools. */
export type Said = string | readonly Call[]

/** A model behind a real server of chat completions on the loopback, with the environment that leads there. */
export async function chatServer(answer: (asked: Asked) => Said) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as Asked
    asked.push(body)
    if (body.messages.at(-1)?.role === 'assistant') return refuse(response)
    send(response, answer(body), body.stream === true)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    asked,
    env: {
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_API_KEY: 'key-of-the-test',
      OPENAI_DEFAULT_MODEL: 'house-model',
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** As strict as Claude since 4.6, which does not go on with an answer of its own. */
function refuse(response: ServerResponse): void {
  const error = { type: 'invalid_request_error', message: 'The conversation must end with a user message.' }
  response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
}

/** Said in one piece, or as a stream of several. */
function send(response: ServerResponse, said: Said, asStream: boolean): void {
  const head = { id: '1', created: 1, model: 'house-model' }
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const isText = typeof said === 'string'
  const finish_reason = isText ? 'stop' : 'tool_calls'
  response.setHeader('content-type', asStream ? 'text/event-stream' : 'application/json')
  if (!asStream) {
    const message = { role: 'assistant', ...(isText ? { content: said } : { tool_calls: said.map(callOf) }) }
    response.end(JSON.stringify({ ...head, choices: [{ index: 0, message, finish_reason }], usage }))
    return
  }
  const deltas = isText
    ? said.split(/(?<= )/).map(content => ({ role: 'assistant', content }))
    : [{ role: 'assistant', tool_calls: said.map(callOf) }]
  const pieces = [
    ...deltas.map(delta => ({ ...head, choices: [{ index: 0, delta, finish_reason: null }] })),
    { ...head, choices: [{ index: 0, delta: {}, finish_reason }], usage },
  ]
  response.end(`${pieces.map(piece => `data: ${JSON.stringify(piece)}\n\n`).join('')}data: [DONE]\n\n`)
}

function callOf({ name, args }: Call, index: number) {
  return {
    index,
    id: `call-${++calls}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }
}

let calls = 0
