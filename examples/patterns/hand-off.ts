// Hand-off: one agent finds out, another answers, and the second sees the question and the findings but not the work behind them.
// Without a key the models are scripted.
import { Agent, configure, Session, tool } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from '../model.ts'

configure({ store: 'memory:' })

const search = tool({
  name: 'search',
  description: 'Search the manual.',
  input: { type: 'object', properties: { words: { type: 'string' } }, required: ['words'] },
  effect: 'read',
  run: ({ words }: { words: string }) =>
    `12 pages mention ${words}; page 7 says: hold the button for ten seconds.`,
})

const researcher = new Agent('Look it up with search and note what matters.', {
  name: 'researcher',
  model: modelOr(
    scripted([
      { toolCalls: [{ name: 'search', args: { words: 'reset' } }] },
      'Page 7: hold the button for ten seconds.',
    ]),
  ),
  tools: [search],
  builtins: false,
})

const writer = new Agent('Answer the customer in one sentence.', {
  name: 'writer',
  model: modelOr(scripted(['To reset it, hold the button for ten seconds.'])),
  builtins: false,
})

const asked = Session.fromUserMessage('How do I reset it?')
const researched = await researcher(asked)

// The filtered view is a session like any other: back to the question, then only what the next agent needs.
const handedOver = researched.rewind(0).user(`Notes from ${researcher.name}: ${researched.text}`)
const answered = await writer(handedOver)

console.log(`researcher worked over ${researched.length} chunks`)
console.log(`writer was shown ${handedOver.length} of them`)
console.log(`writer: ${answered.text}`)
