// Memory: what an agent keeps between sessions. It is recalled before an answer and committed after it, and all of it is on the record. Without a key the models are scripted.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, configure, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using _runtime = configure({ store: 'memory:' })
// In a program of yours `memory: 'local'` is enough: .openrath/memory/ in the folder you run it in, the same next week.
const path = mkdtempSync(join(tmpdir(), 'openrath-example-'))
const memory = { backend: 'local', path }

const model = modelOr(scripted(['Then a pot of sencha it is.', 'Sencha, as always.']))
const prompt = 'You take orders in a tea room that has sencha and darjeeling. Answer in one sentence.'
// Found by words, which need no model; with configure({ embed }) also by meaning.
const words = { mode: 'words' } as const
const waiter = new Agent(prompt, { model, memory, recall: words, builtins: false, commitOnForward: true })

await waiter.remember('Ada takes no sugar.', { scope: 'user/ada', category: 'preference' })
const first = await waiter(Session.fromUserMessage('Ada here. I would like a green tea, please.'))
console.log(`today: ${first.text}`)

// Another conversation, another agent: whoever names the same store shares it. What belongs to a user is recalled only where that is asked for.
const recall = { ...words, scope: ['user/ada', 'session'] }
const colleague = new Agent(prompt, { model, memory, builtins: false, recall })
const later = await colleague(Session.fromUserMessage('What tea does Ada like, and with sugar?'))
console.log(`next week: ${later.text}`)
for (const chunk of [...first.chunks, ...later.chunks]) {
  if (chunk.kind !== 'memory') continue
  const what = chunk.hits ? `${chunk.hits.length} hits` : `${chunk.entries?.length} entries`
  console.log(`on the record: ${chunk.op} in ${chunk.store.split(':')[0]}, ${what}`)
}

// What the model saw is on the chunk, word for word: marked as untrusted, and behind the question.
const recalled = later.chunks.find(chunk => chunk.kind === 'memory')
console.log(`shown: ${recalled?.injected?.split('\n')[0]?.slice(0, 86)}…`)
console.log(`before the answer: ${later.messages().at(-2)?.role}, ${recalled?.hits?.length} notes`)

// Nothing that fits is nothing, and not four weak guesses.
console.log(`about zebras: ${(await waiter.recall('zebra crossing')).length}`)

// A model can write down facts instead. It is shown what is known, and says what a fact replaces.
const [sugar] = await waiter.recall('sugar', { scope: 'user/ada' })
const note = { text: 'Ada takes one sugar.', category: 'preference', replaces: sugar?.id ?? null }
const reader = modelOr(scripted([JSON.stringify({ notes: [note] })]))
const changed = Session.fromUserMessage('Ada here: from now on one sugar, please.')
const { written } = await waiter.commit(changed, { model: reader, scope: 'user/ada' })
for (const { text, version } of written) console.log(`corrected: ${text} (version ${version})`)

console.log(`forgotten: ${await waiter.forget(sugar?.id ?? '')}`)
await Promise.all([waiter, colleague].map(agent => agent[Symbol.asyncDispose]())) // or: await using
rmSync(path, { recursive: true })
