// A model chooses which way to go; `if` and `while` around it stay plain TypeScript. Without a key the models are scripted.
import { Agent, configure, EmptyWorkflow, Selector, Session, type Workflow } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using _runtime = configure({ store: 'memory:' })

// Each way says what it is for; that is what the model chooses by.
const member = (name: string, description: string, lines: string[]) =>
  new Agent(`You are at a help desk. ${description} One sentence.`, {
    name,
    description,
    model: modelOr(scripted(lines)),
    builtins: false,
  })
const triage = member('triage', 'Asks the customer for what is missing.', ['Which version do you use?'])
const tech = member('tech', 'Solves technical questions. Version 2.1 mends crashes of 2.0.', [
  'Update to 2.1, then it saves again.',
])
const wrapUp = member('wrap-up', 'Closes a case that is solved.', ['Glad that I could help.'])

/** Stands for a model: it goes by what was said last. */
const script = scripted(({ messages }) => {
  const said = JSON.stringify(messages.findLast(({ role }) => role === 'assistant') ?? '')
  if (JSON.stringify(messages).includes('twice')) return '{"reason":"It is open again.","choice":"tech"}'
  if (said.includes('Glad')) return '{"reason":"The case is closed.","choice":"none"}'
  if (said.includes('Update')) return '{"reason":"It is solved.","choice":"wrap-up"}'
  if (said.includes('version')) return '{"reason":"The version is known.","choice":"tech"}'
  return '{"reason":"No version was named.","choice":"triage"}'
})
const desk = new Selector({
  instruction: 'You lead a help desk. Choose who goes on; none once the case is closed.',
  model: modelOr(script),
})

// if: one decision. What comes back is the chosen agent, ready to call.
let session = Session.fromUserMessage('It crashes when I save.')
const replies = ['Version 2.0.', 'It saves again, thank you.', 'Good bye.']
const customer = (told: Session) => told.user(replies.shift() ?? 'Good bye.')
const first = await desk(session, triage, tech, wrapUp)
if (first.name === 'triage') session = customer(await first(session))

// while: until nobody is needed, or it takes too long. An EmptyWorkflow returns its session as it is, with the decision on the record.
let next: Workflow = await desk(session, triage, tech, wrapUp)
while (!(next instanceof EmptyWorkflow) && session.length < 20) {
  session = customer(await next(session))
  next = await desk(session, triage, tech, wrapUp)
}
if (next instanceof EmptyWorkflow) session = await next(session)

for (const chunk of session.chunks) {
  if (chunk.kind === 'route') console.log(`    desk chose ${chunk.choice ?? 'nobody'}: ${chunk.reason}`)
  else console.log(`${chunk.by ?? 'customer'}: ${chunk.text}`)
}

// To look before you go on: the decision by itself.
const { choice, reason } = await desk.decide(session.user('Now it saves twice.'), triage, tech)
console.log(`asked again: ${choice instanceof EmptyWorkflow ? 'nobody' : choice.name}. ${reason}`)
