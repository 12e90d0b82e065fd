// A supervisor loop: a selector looks at the session and says who goes on, until nobody is needed. The loop is a plain while.
import { Agent, configure, EmptyWorkflow, Selector, Session, type Workflow } from 'openrath'
import { scripted } from 'openrath/testing'

configure({ store: 'memory:' })

const worker = (name: string, description: string, lines: string[]) =>
  new Agent(description, { name, description, model: scripted(lines), builtins: false })

const coder = worker('coder', 'Writes and mends the code.', ['return a - b', 'return a + b'])
const tester = worker('tester', 'Runs the tests and reports.', [
  '1 test failed: 2 + 2 gave 0',
  'All tests pass',
])

const supervisor = new Selector({
  instruction: 'You lead the team. Choose who goes on; none once the tests pass.',
  model: scripted(({ messages }) => {
    const history = messages.filter(message => message.role === 'assistant')
    const last = history.at(-1)?.content[0]
    const text = last?.type === 'text' ? last.text : ''
    if (text.startsWith('All tests pass')) return '{"reason":"The tests pass.","choice":"none"}'
    if (text.startsWith('return')) return '{"reason":"The code is new.","choice":"tester"}'
    return '{"reason":"The code does not work yet.","choice":"coder"}'
  }),
})

let session = Session.fromUserMessage('Write add(a, b).')
let next: Workflow = await supervisor(session, coder, tester)
while (!(next instanceof EmptyWorkflow)) {
  session = await next(session)
  next = await supervisor(session, coder, tester)
}
// Calling what was chosen last, too, puts the end on the record.
session = await next(session)

for (const chunk of session.chunks) {
  if (chunk.kind === 'route') console.log(`supervisor: ${chunk.choice ?? 'nobody'}. ${chunk.reason}`)
  if (chunk.kind === 'assistant') console.log(`${chunk.by}: ${chunk.text}`)
}
