// A shared session with roles: several agents speak in turn on one record. Everyone reads everything, and every chunk says who said it.
// Without a key the models are scripted.
import { Agent, configure, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from '../model.ts'

configure({ store: 'memory:' })

const role = (name: string, task: string, lines: string[]) =>
  new Agent(`You are the ${name}. ${task} One sentence.`, {
    name,
    model: modelOr(scripted(lines)),
    builtins: false,
  })

const architect = role('architect', 'Propose a design, then take up the objections.', [
  'One queue, one worker.',
  'Two workers, and jobs that may run twice.',
])
const skeptic = role('skeptic', 'Find the weakest point.', ['What happens when the worker dies?'])
const clerk = role('clerk', 'Write down what was agreed.', ['Agreed: two workers, idempotent jobs.'])

let session = Session.fromUserMessage('Design the job system.')
for (const speaker of [architect, skeptic, architect, clerk]) {
  // A line from the chair tells the model whose turn it is; without it, all answers would look like its own.
  session = await speaker(session.user(`${speaker.name}, it is your turn.`))
}

for (const chunk of session.chunks) if (chunk.kind === 'assistant') console.log(`${chunk.by}: ${chunk.text}`)
console.log(`${session.length} chunks on one record`)
