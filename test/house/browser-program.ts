// A user's program for a browser. browser.test.ts bundles it and runs it without Node, and runs it in Node to compare.
import { Session, sessionGraph } from 'openrath/session'

export * from 'openrath/session'

const at = Date.UTC(2026, 0, 1)

/** What this place makes of a session; everything here is the same wherever it runs, except `file`. */
export async function walk() {
  const question = Session.fromUserMessage([{ type: 'text', text: 'Größe? 🎈 \ud800 \u2028' }], {
    at,
  }).append({
    kind: 'user',
    content: [{ type: 'image', mediaType: 'image/png', data: new Uint8Array([0, 127, 255]) }],
    at,
  })
  const left = question
    .fork('left')
    .append(
      { kind: 'assistant', toolCalls: [{ id: 'call-1', name: 'add', args: { a: 0.1, b: -0, c: 1e21 } }], at },
      { kind: 'tool-result', callId: 'call-1', tool: 'add', outcome: { kind: 'value', value: [null] }, at },
    )
  const right = question.fork().append({ kind: 'assistant', text: 'Right.', at })
  const merged = await left.merge(right, { at })
  const file = merged.toJSONL()
  const again = Session.fromJSONL(file)
  const { ours, theirs, shared } = await left.diff(right)
  return {
    heads: [question.head, left.head, right.head],
    states: [question.state, left.state, right.state, merged.state, again.state],
    messages: merged.messages(),
    text: merged.text,
    diff: [ours.length, theirs.length, shared],
    verified: again.verify(),
    roundTrip: again.toJSONL() === file,
    tampered: Session.fromJSONL(file.replace('Right.', 'Wrong.')).verify().problem?.index,
    drawn: sessionGraph([question.detach()]).toMermaid().startsWith('flowchart TD'),
    idLength: question.id.length,
    file,
  }
}
