// A long conversation made short: the model is shown a summary, and the record keeps every word. Without a key the models are scripted.
import { Agent, Compressor, configure, Session, tool } from 'openrath'
import { restore } from 'openrath/flow'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using _runtime = configure({ store: 'memory:' })

let long = Session.fromUserMessage('We plan the summer party.')
for (const day of ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday']) {
  long = long
    .append({ kind: 'assistant', text: `On ${day} the hall is taken until six.` })
    .user('And the day after?')
}
console.log(`before: ${long.length} chunks, ${long.messages().length} messages`)

// A compressor is a layer like any other. `keep` leaves the end as it is.
const compressor = new Compressor('Keep what was decided and what is open.', {
  model: modelOr(scripted(['The hall is taken until six from Monday to Friday; the weekend is open.'])),
  keep: 2,
})
const short = await compressor(long)
console.log(`after: ${short.length} chunks, ${short.messages().length} messages`)
for (const { role, content } of short.messages().filter(message => message.role !== 'tool')) {
  console.log(`  ${role}: ${content[0]?.type === 'text' ? content[0].text.split('\n').at(-1) : ''}`)
}

// Nothing is lost: the summary names what it stands for, and `restore` takes it back.
const summary = short.chunks.find(chunk => chunk.kind === 'compress')
console.log(
  `it stands for ${summary?.replaced.length} chunks; restored: ${restore(short).messages().length} messages`,
)

// An agent can look after itself: before a request that would be too long, its history is summarised.
const page = tool({
  name: 'page',
  description: 'A page of the minutes.',
  input: { type: 'object', properties: { number: { type: 'number' } }, required: ['number'] },
  effect: 'read',
  run: ({ number }: { number: number }) =>
    `Page ${number}. ${'They spoke about the weather at length. '.repeat(40)}`,
})
let number = 0
const reader = new Agent('Read the minutes page by page, one page a turn. There are four.', {
  name: 'reader',
  // Its model writes the summaries, too: a request without tools asks for one.
  model: modelOr(
    scripted(({ tools }) => {
      if (tools.length === 0) return 'So far: the weather.'
      return ++number > 4
        ? 'They spoke about the weather.'
        : { toolCalls: [{ name: 'page', args: { number } }] }
    }),
  ),
  tools: [page],
  maxRounds: 12,
  builtins: false,
  autoCompress: { above: 700 },
})
const read = await reader(Session.fromUserMessage('What do the minutes say? One sentence.'))
const times = read.chunks.filter(chunk => chunk.kind === 'compress').length
console.log(
  `${reader.name}: ${read.text} (summaries on the way: ${times}; chunks on the record: ${read.length})`,
)
