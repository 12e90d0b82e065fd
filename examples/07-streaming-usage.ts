// Everything a run does is one stream of events, and everything it spends is counted. Without a key the model is scripted.
import { Agent, configure, type RunEvent, Session, tool } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using _runtime = configure({ store: 'memory:' })

const weather = tool({
  name: 'weather',
  description: 'The weather in a town.',
  input: { type: 'object', properties: { town: { type: 'string' } }, required: ['town'] },
  effect: 'read',
  run: ({ town }: { town: string }) => `Sunny in ${town}.`,
})

const script = scripted([
  { error: { status: 529, message: 'overloaded' } }, // the provider stumbles, and is asked again
  {
    reasoning: 'I should look.',
    toolCalls: [{ name: 'weather', args: { town: 'Oslo' } }],
    usage: { inputTokens: 120, outputTokens: 30, reasoningTokens: 12, cost: 0.0015 },
  },
  {
    deltas: ['Take ', 'sun', 'glasses.'],
    usage: { inputTokens: 180, cachedInputTokens: 120, outputTokens: 8, cost: 0.0006 },
  },
])
const agent = new Agent('You advise travellers, in one sentence, after a look at the weather.', {
  model: modelOr(script),
  name: 'guide',
  tools: [weather],
  builtins: false,
  retry: { baseMs: 10 },
})

const pending = agent(Session.fromUserMessage('Oslo tomorrow: what do I pack?'))
for await (const event of pending)
  console.log(`${event.by} ${event.type.padEnd(16)} ${detail(event)}`.trimEnd())
const session = await pending

// What each answer cost is on its chunk; the session adds it up.
for (const chunk of session.chunks) {
  if (chunk.kind === 'assistant')
    console.log(`chunk ${chunk.index}: ${chunk.usage?.totalTokens} tokens, ${dollars(chunk.usage?.cost)}`)
}
const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens, cost } = session.usage
console.log(`in: ${inputTokens}, of these ${cachedInputTokens} from the cache`)
console.log(`out: ${outputTokens}, of these ${reasoningTokens} reasoning`)
console.log(`cost: ${dollars(cost)}`)

// Branches share what came before them, and it is counted once.
const answer = { kind: 'assistant', text: 'And a hat.', usage: { inputTokens: 10 } } as const
const merged = await session.fork('a').append(answer).merge(session.fork('b').append(answer))
console.log(`two branches of 10 tokens each, merged: ${merged.usage.totalTokens} tokens in all`)

/** Counted where the price of the model is known: see the list prices, or give your own with `prices`. */
function dollars(cost: number | undefined): string {
  return cost === undefined ? 'no price known' : `$${cost.toFixed(4)}`
}

function detail(event: RunEvent): string {
  if (event.type === 'text-delta' || event.type === 'reasoning-delta') return JSON.stringify(event.text)
  if (event.type === 'tool-call') return `${event.call.name} ${JSON.stringify(event.call.args)}`
  if (event.type === 'tool-result') return JSON.stringify(event.outcome)
  if (event.type === 'retry') return `after attempt ${event.attempt}: ${event.error}`
  if (event.type === 'chunk') return `${event.chunk.index} ${event.chunk.kind}`
  return event.type === 'run-end' ? event.status : ''
}
