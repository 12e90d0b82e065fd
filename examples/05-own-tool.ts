// A tool of your own: a description, a schema, a function. What the model writes is checked before your code sees it. Without a key the model is scripted.
import { Agent, configure, Session, tool } from 'openrath'
import { scripted } from 'openrath/testing'
import { z } from 'zod'
import { modelOr } from './model.ts'

await using _runtime = configure({ store: 'memory:' })

const stock = new Map([
  ['lamp', 3],
  ['chair', 0],
])

const inStock = tool({
  name: 'in_stock',
  description: 'How many of an article are in stock.',
  input: z.object({ article: z.string().describe('Its name, in the singular.') }),
  effect: 'read', // it only looks, so calls may run side by side and be repeated
  run({ article }) {
    const count = stock.get(article)
    if (count === undefined)
      throw new Error(`There is no ${article}; there are ${[...stock.keys()].join(', ')}.`)
    return { article, count }
  },
})

const reserve = tool({
  name: 'reserve',
  description: 'Put articles aside for a customer.',
  input: z.object({ article: z.string(), count: z.number().int().positive() }),
  effect: 'external', // it changes the world: never repeated unasked
  resource: ({ article }) => article, // two calls for one article run in the order asked
  approval: ({ count }) => count > 1, // more than one needs a person's word
  async run({ article, count }, { signal, progress }) {
    progress({ step: 'asking the shelf' }) // whoever follows the run sees this
    signal.throwIfAborted() // aborted when the run is cancelled or the call times out
    stock.set(article, (stock.get(article) ?? 0) - count)
    return `${count} ${article} put aside`
  },
})

const script = scripted([
  { toolCalls: ['lamp', 'chair', 'sofa'].map(article => ({ name: 'in_stock', args: { article } })) },
  { toolCalls: [{ name: 'reserve', args: { article: 'lamp', count: 'two' } }] }, // a slip: it reads what is wrong and mends it
  { toolCalls: [{ name: 'reserve', args: { article: 'lamp', count: 2 } }] },
  'Two lamps are yours. We have no chairs, and no sofas at all.',
])
const clerk = new Agent(
  'You sell furniture. See what is in stock, then reserve what there is of the order.',
  {
    model: modelOr(script),
    tools: [inStock, reserve],
    builtins: false,
  },
)

const session = await clerk(Session.fromUserMessage('Two lamps, a chair and a sofa, please.'), {
  approve: ({ tool, args }) => {
    console.log(`asked: ${tool.name} ${JSON.stringify(args)}`)
    return { verdict: 'approved', by: 'the owner' }
  },
  onEvent: event => {
    if (event.type === 'tool-progress') console.log(`progress: ${JSON.stringify(event.data)}`)
  },
})

for (const chunk of session.chunks) {
  if (chunk.kind === 'tool-result') console.log(`${chunk.tool}: ${chunk.text}`)
  if (chunk.kind === 'approval' && chunk.verdict) console.log(`${chunk.verdict} by ${chunk.decidedBy}`)
}
console.log(`answer: ${session.text}`)
console.log(`left: ${stock.get('lamp')} lamp`)
