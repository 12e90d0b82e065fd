// A supervisor loop: a selector looks at the session and says who goes on, until nobody is needed. The loop is a plain while.
// Without a key the models are scripted.
import { Agent, configure, EmptyWorkflow, Selector, Session, type Workflow } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from '../model.ts'

configure({ store: 'memory:' })

const worker = (name: string, description: string, lines: string[]) =>
  new Agent(description, { name, description, model: modelOr(scripted(lines)), builtins: false })

const coder = worker('coder', 'Writes and mends the code: answers with one line of JavaScript.', [
  'return a - b',
  'return a + b',
])
const tester = worker(
  'tester',
  'Goes through what 2 + 2 gives with the code, and reports in one sentence: All tests pass, or what failed.',
  ['1 test failed: 2 + 2 gave 0', 'All tests pass'],
)

/** Stands for a model: it goes by what was said last. */
const script = scripted(({ messages }) => {
  const history = messages.filter(message => message.role === 'assistant')
  const last = history.at(-1)?.content[0]
  const text = last?.type === 'text' ? last.text : ''
  if (text.startsWith('All tests pass')) return '{"reason":"The tests pass.","choice":"none"}'
  if (text.startsWith('return')) return '{"reason":"The code is new.","choice":"tester"}'
  return '{"reason":"The code does not work yet.","choice":"coder"}'
})
const supervisor = new Selector({
  instruction: 'You lead the team. Choose who goes on; none once the tests pass.',
  model: modelOr(script),
})

let session = Session.fromUserMessage('Write add(a, b).')
let next: Workflow = await supervisor(session, coder, tester)
while (!(next instanceof EmptyWorkflow) && session.length < 20) {
  session = await next(session.user(`${next.name}, it is your turn.`))
  next = await supervisor(session, coder, tester)
}
// Calling what was chosen last, too, puts the end on the record.
if (next instanceof EmptyWorkflow) session = await next(session)

for (const chunk of session.chunks) {
  if (chunk.kind === 'route') console.log(`supervisor: ${chunk.choice ?? 'nobody'}. ${chunk.reason}`)
  if (chunk.kind === 'assistant') console.log(`${chunk.by}: ${chunk.text}`)
}
