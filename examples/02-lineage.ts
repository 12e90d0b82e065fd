// A walk through the Session, the value that flows between agents. No model, no key, nothing written to disk.
import { Session, sessionGraph } from 'openrath'

const story = (step: string) => console.log(`\n${step}`)
const print = (text: string) => console.log(text.trimEnd().replace(/^/gm, '   '))

// Step 7 draws these; a graph wants every parent of every session in it.
const family: Session[] = []
const keep = (session: Session) => {
  family.push(session)
  return session
}

/** What an agent would do: ask for a tool, read its result, answer. */
function write(branch: Session, tagline: string): Session {
  const call = { id: 'call-1', name: 'word_count', args: { text: tagline } }
  const value = { words: tagline.split(' ').length }
  return keep(
    keep(branch).append(
      { kind: 'assistant', toolCalls: [call], usage: { inputTokens: 40, outputTokens: 12 } },
      {
        kind: 'tool-result',
        callId: call.id,
        tool: call.name,
        args: call.args,
        outcome: { kind: 'value', value },
      },
      { kind: 'assistant', text: tagline, usage: { inputTokens: 60, outputTokens: 8 } },
    ),
  )
}

story('1. Make a session and place it. Every operation returns a new session; the old one stays as it was.')
const asked = keep(Session.fromUserMessage('Write a tagline for OpenRath.'))
const placed = keep(asked.to('local', './'))
print(
  `asked has ${asked.length} chunk; placed has ${placed.length} and works on ${placed.placement?.backend}`,
)

story('2. Fork it three ways. Three writers go on from one history, and nothing is copied.')
const calm = write(placed.fork('calm'), 'Agents you can trace.')
const bold = write(placed.fork('bold'), 'Every agent leaves a trail. Read it.')
const plain = write(placed.fork('plain'), 'A runtime for many agents over many sessions.')
for (const draft of [calm, bold, plain])
  print(`${draft.branch.padEnd(5)} ${draft.length} chunks  "${draft.text}"`)

story('3. Compare two branches: what they share, and what each has of its own.')
const { shared, ours, theirs } = await calm.diff(bold)
print(`${shared} chunks shared; then ${ours.length} on calm and ${theirs.length} on bold`)

story('4. Merge them. Shared history is kept once, each branch follows whole, usage adds up.')
const merged = keep(await calm.merge([bold, plain], { by: 'editor' }))
for (const chunk of merged.chunks) {
  print(
    `${String(chunk.index).padStart(2)} ${chunk.kind.padEnd(11)} ${(chunk.branch ?? '').padEnd(5)} ${chunk.text || '→ word_count'}`,
  )
}
print(`${merged.usage.totalTokens} tokens in all`)

story('5. Rewind to any chunk and go on differently. The original does not change.')
const rewound = keep(merged.rewind(1))
const retold = write(rewound.fork('retold'), 'Sessions flow, agents come and go.')
print(`rewound has ${rewound.length} chunks; retold says "${retold.text}"; merged still has ${merged.length}`)

story('6. Detach: the same history, as the start of a graph of its own.')
const detached = merged.detach()
print(`same head: ${detached.head === merged.head}; parents: ${detached.lineage.parents.length}`)

story('7. Draw how each session came from others. Anything that renders Mermaid shows this.')
print(sessionGraph(family).toMermaid())

story('8. Write it as JSONL and read it back. The digests say that nothing changed on the way.')
const file = merged.toJSONL()
const read = Session.fromJSONL(file)
print(
  `${file.trimEnd().split('\n').length} lines; same head: ${read.head === merged.head}; ok: ${read.verify().ok}`,
)

story('9. Change one word in one line, and verify names the chunk.')
const { ok, problem } = Session.fromJSONL(file.replace('Every agent', 'Not every agent')).verify()
print(`ok: ${ok}; ${problem?.reason.replace(/([0-9a-f]{8})[0-9a-f]{56}/g, '$1…')}`)
