// One agent, many models: names, a Provider with an address of its own, and a model that you write yourself.
// Nothing is scripted: the first two are real where their key is set, and say what is missing where it is not.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { Agent, configure, type ModelLike, Provider, RathError, Session } from 'openrath'
import { type Model, priceOf } from 'openrath/model'

await using _runtime = configure({ store: 'memory:' })

// A gateway that speaks chat completions, in this very process: stands for any server you run or rent.
const gateway = createServer(async (request, response) => {
  const { model } = (await json(request)) as { model: string }
  const key = request.headers.authorization === 'Bearer key-of-the-gateway' ? 'with its key' : 'without a key'
  const message = { role: 'assistant', content: `${model} answers, ${key}.` }
  const usage = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 }
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({ id: '1', model, choices: [{ index: 0, message, finish_reason: 'stop' }], usage }),
  )
})
await new Promise<void>(resolve => gateway.listen(0, '127.0.0.1', resolve))
const { port } = gateway.address() as { port: number }

const rented = new Provider({
  model: 'llama-4',
  baseURL: `http://127.0.0.1:${port}/v1`,
  apiKey: 'key-of-the-gateway',
  temperature: 0,
  prices: { 'openai-compatible/llama-4': { input: 0.5, output: 1 } }, // dollars for a million tokens
})
console.log(
  `printed, it shows no key: ${JSON.stringify(rented).includes('key-of-the-gateway') ? 'wrong' : String(rented)}`,
)

// A model is an id and a function from request to answer. Whatever you can call, an agent can use.
const parrot: Model = {
  id: 'mine/parrot',
  async answer({ messages }) {
    const last = messages.at(-1)
    const said = last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : '?'
    return { content: [{ type: 'text', text: `${said} ${said}` }], finishReason: 'stop' }
  },
}

// By name, the key comes from the environment or the config file, and only when the model is first asked.
const models: ModelLike[] = ['openai/gpt-5.5', 'anthropic/claude-opus-5-5', rented, parrot]
for (const model of models) {
  const agent = new Agent('Answer in five words.', { model, builtins: false, retry: { attempts: 2 } })
  const price = priceOf(agent.model.id)
  console.log(
    `\n${agent.model.id}${price ? `, $${price.input} in and $${price.output} out for a million tokens` : ''}`,
  )
  try {
    const { text, usage } = await agent(Session.fromUserMessage('Who are you?'))
    console.log(
      `  ${text}\n  ${usage.totalTokens} tokens${usage.cost === undefined ? '' : `, $${usage.cost}`}`,
    )
  } catch (error) {
    if (!(error instanceof RathError)) throw error
    console.log(`${error.code}: ${error.message}`.replace(/^/gm, '  '))
  }
}
gateway.close()
