// The smallest agent, streaming. With OPENAI_API_KEY or ANTHROPIC_API_KEY set it asks a real model; without, a scripted one.
import { Agent, configure, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

// Sessions are kept in `.openrath/rath.db` unless you say otherwise; here they go when the program ends.
await using _runtime = configure({ store: 'memory:' })

const script = scripted([
  { deltas: ['A session ', 'is an immutable chain ', 'of everything said and done.'] },
  'As little as one small object, however long the history is.',
])
const about =
  'In OpenRath a session is an immutable chain of all that was said and done; a fork shares it and costs one small object.'
const agent = new Agent(`You are a friendly guide. ${about} Answer in one sentence.`, {
  model: modelOr(script), // or the name of one, such as 'openai/gpt-5.5'
  name: 'guide',
  builtins: false, // it needs no files and no commands
})
console.log(`model: ${agent.model.id}`)

// An agent is called like a function. The call returns at once: follow it while it runs, await it for the result.
const question = Session.fromUserMessage('What is a session in OpenRath?')
const pending = agent(question)

process.stdout.write('answer: ')
for await (const event of pending) {
  if (event.type === 'text-delta') process.stdout.write(event.text)
}
process.stdout.write('\n')

const session = await pending
console.log(
  `chunks: ${session.chunks.map(chunk => chunk.kind).join(', ')}; the question still has ${question.length}`,
)
console.log(`tokens: ${session.usage.inputTokens} in, ${session.usage.outputTokens} out`)

// Go on by calling it again with what it made.
const more = await agent(session.user('And what does a fork cost?'))
console.log(`then: ${more.text}`)
