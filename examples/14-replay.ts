// A run again from its record; a run after an edit, paying only for what changed; and what if it had gone otherwise. Scripted models.
import { Agent, configure, Session, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'

await using runtime = configure({ store: 'memory:' })

let asked = 0
/** An agent whose model counts how often it is really asked. */
const says = (prompt: string, answer: string) => {
  const model = scripted(() => {
    asked++
    return answer
  })
  return new Agent(prompt, { model, builtins: false })
}

class Report extends Workflow {
  writer = says('Write one sentence.', 'Sales went up by a tenth.')
  critic: Agent
  editor = says('Join both.', 'Sales went up by a tenth; costs did, too.')

  constructor(critic = says('Criticise it.', 'What about costs?')) {
    super()
    this.critic = critic
  }

  async forward(session: Session) {
    session = await this.critic((await this.writer(session)).user('What is missing?'))
    return this.editor(session.user('Write it again.'))
  }
}

const question = Session.fromUserMessage('How are sales?')
const first = runtime.run(new Report(), question)
const told = await first
console.log(`recorded: "${told.text}", ${asked} answers`)

// Replay: the code runs, and everything that touches the world comes from the record.
asked = 0
const replayed = await runtime.replay(first.runId, new Report())
console.log(
  `replayed: ok ${replayed.ok}, ${replayed.served} effects from the record, model asked ${asked} times`,
)

// The same with an edited prompt: the replay says where it went another way, and why.
const edited = () => new Report(says('Criticise it kindly.', 'Nice. And costs?'))
const { ok, divergence } = await runtime.replay(first.runId, edited())
console.log(`edited: ok ${ok}, ${divergence?.cause}, by ${divergence?.by}`)

// Run it after the edit, and borrow what has not changed.
asked = 0
const second = runtime.run(edited(), question, { reuse: first.runId })
await second
const { paid, reused } = await runtime.report(second.runId)
console.log(`run again: ${reused.calls} borrowed, ${paid.calls} paid for, model asked ${asked} times`)

// What if the critic had said something else? Back to the answer before it, and on from there: a branch beside the original.
const before = told.rewind(1)
const other = await runtime.run(new Report().editor, before.user('Be brief.'))
console.log(
  `what if: ${other.length} chunks, ${before.length} shared; the first run still has ${told.length}`,
)
