// A debate with a judge: two sides argue on branches of their own, each told what the other said, and a judge reads both and decides. Without a key the models are scripted.
import { Agent, configure, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from '../model.ts'

configure({ store: 'memory:' })

const side = (name: string, stand: string, lines: string[]) =>
  new Agent(`Argue ${stand}. Answer the other side in one sentence.`, {
    name,
    model: modelOr(scripted(lines)),
    builtins: false,
  })

const pro = side('pro', 'for a rewrite', [
  'The old code cannot be tested.',
  'Then let us write the tests first.',
])
const contra = side('contra', 'against a rewrite', [
  'A rewrite stops everything for a year.',
  'Tests first is what I say; the rewrite can wait.',
])

const judge = new Agent('Read both sides, pro and contra. Name the winner and say why.', {
  name: 'judge',
  model: modelOr(scripted(['{"winner":"contra","reason":"Both sides end with tests first."}'])),
  output: {
    type: 'object',
    properties: { winner: { enum: ['pro', 'contra'] }, reason: { type: 'string' } },
    required: ['winner', 'reason'],
    additionalProperties: false,
  },
  builtins: false,
})

const question = Session.fromUserMessage('Should we rewrite it?')
let [forIt, againstIt] = question.forks(['pro', 'contra'])
for (let round = 1; round <= 2; round++) {
  // Both speak at the same time, so neither has the last word within a round.
  const said = [forIt.text, againstIt.text]
  ;[forIt, againstIt] = await Promise.all([
    pro(said[1] ? forIt.user(`The other side says: ${said[1]}`) : forIt),
    contra(said[0] ? againstIt.user(`The other side says: ${said[0]}`) : againstIt),
  ])
  console.log(`round ${round}\n  pro: ${forIt.text}\n  contra: ${againstIt.text}`)
}

const judged = await judge((await forIt.merge(againstIt)).user('Who is right?'))
const { winner, reason } = JSON.parse(judged.text)
// The verdict goes on the record as what it is, beside the words it came in.
const closed = judged.append({ kind: 'verdict', verdict: 'accept', subject: winner, reason, by: judge.name })
console.log(`judge: ${winner}, because ${reason} (${closed.chunks.at(-1)?.kind} on the record)`)
