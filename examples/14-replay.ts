// A run again from its record; a run after an edit, paying only for what changed; and what if it had gone otherwise.
// Without a key the models are scripted. Replays ask nobody, with a key or without.
import { Agent, configure, Session, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using runtime = configure({ store: 'memory:' })

const says = (prompt: string, answer: string) =>
  new Agent(`${prompt} Use one sentence.`, { model: modelOr(scripted(() => answer)), builtins: false })
/** How many answers a run paid for. */
const paidBy = async (run: string) => (await runtime.report(run)).paid.calls

class Report extends Workflow {
  writer = says('Report.', 'Sales went up by a tenth.')
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

const question = Session.fromUserMessage('How are sales? They went from 100 to 110, and costs from 50 to 55.')
const first = runtime.run(new Report(), question)
const told = await first
console.log(`recorded: "${told.text}", ${await paidBy(first.runId)} answers paid for`)

// Replay: the code runs, and everything that touches the world comes from the record.
const replayed = await runtime.replay(first.runId, new Report())
const isSame = replayed.session?.text === told.text
console.log(
  `replayed: ok ${replayed.ok}, ${replayed.served} answers from the record, the same words: ${isSame}`,
)

// The same with an edited prompt: the replay says where it went another way, and why.
const edited = () => new Report(says('Criticise it kindly.', 'Nice. And costs?'))
const { ok, divergence } = await runtime.replay(first.runId, edited())
console.log(`edited: ok ${ok}, ${divergence?.cause}, by ${divergence?.by}`)

// Run it after the edit, and borrow what has not changed.
const second = runtime.run(edited(), question, { reuse: first.runId })
await second
const { paid, reused } = await runtime.report(second.runId)
console.log(`run again: ${reused.calls} borrowed, ${paid.calls} paid for`)

// What if the critic had said something else? Back to the answer before it, and on from there: a branch beside the original.
const before = told.rewind(1)
const other = await runtime.run(new Report().editor, before.user('Be brief.'))
console.log(
  `what if: ${other.length} chunks, ${before.length} shared; the first run still has ${told.length}`,
)
