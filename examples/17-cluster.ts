// A cluster: forty letters, each on a branch of its own, eight at a time, three agents for each; one budget, one record.
// Without a key the models are scripted; with one, this asks it 120 short questions.
import { Agent, configure, map, Parallel, Session, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using runtime = configure({ store: 'memory:' })

/** An agent; its script answers by what was said last. */
const agent = (name: string, prompt: string, answer: (said: string) => string) =>
  new Agent(prompt, {
    name,
    builtins: false,
    model: modelOr(scripted(({ messages }) => answer(JSON.stringify(messages.at(-1))))),
  })

/** Two read a letter at the same time; the third answers from what both found. */
class Desk extends Workflow {
  readers = new Parallel({
    tone: agent('tone', 'Is the last letter angry, with a "!", or calm? Answer with that one word.', said =>
      said.includes('!') ? 'angry' : 'calm',
    ),
    topic: agent('topic', 'Is it about money or delivery? Answer with that one word.', said =>
      said.includes('bill') ? 'money' : 'delivery',
    ),
  })
  clerk = agent('clerk', 'Answer the letter in one sentence.', () => 'Thank you for your letter.')

  async forward(session: Session) {
    const read = await this.readers(session)
    return this.clerk(read.user('Answer it.'))
  }
}

const letters = Array.from({ length: 40 }, (_, i) => {
  const thing = i % 4 === 0 ? 'bill' : 'parcel'
  return `Letter ${i + 1}: the ${thing} is late${i % 3 === 0 ? '!' : '.'}`
})

// How many desks are at work is seen from outside: every call tells its beginning and its end.
let [working, most] = [0, 0]
const done = await map(Session.fromUserMessage('Answer our letters.'), letters, new Desk(), {
  limit: 8,
  budget: { tokens: 500_000 },
  onEvent({ type, by }) {
    if (!by.endsWith('/Desk')) return
    if (type === 'run-start') most = Math.max(most, ++working)
    if (type === 'run-end') working--
  },
})
const said = done.chunks.filter(chunk => chunk.kind === 'assistant')
console.log(`${letters.length} letters, ${said.length} answers, at most ${most} letters at a time`)

const says = (word: string) => said.filter(chunk => chunk.text.toLowerCase().startsWith(word))
console.log(`${says('angry').length} angry, ${says('money').length} about money`)
console.log(`${done.usage.totalTokens} tokens, the shared question counted once`)

// Who said what, on which branch, and about which letter, stays answerable.
for (const { by, branch } of says('angry').slice(-1)) console.log(`the last "angry": by ${by}, on ${branch}`)

// Every letter, branch and answer is a session of its own in the store.
const { rows } = await runtime.sessions.list({ limit: 1000 })
const kept = await Promise.all(rows.map(({ id }) => runtime.sessions.get(id)))
console.log(
  `${kept.length} sessions kept, and every digest is right: ${kept.every(session => session.verify().ok)}`,
)
