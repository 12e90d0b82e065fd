import { Session, sessionOf, valueFrom } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'

/** A store with a graph: a fork judged twice, a merge, prompts, text of every kind, a run and its journal. */
export async function storeWithGraph(): Promise<{ store: Store; out: Session; branches: Session[] }> {
  const store = await openStore('memory:')
  const prompt = 'ab'.repeat(32)
  const kept = Session.fromAgentPrompt('You write poems. – \u2028 \ud800')
  const input = await store.sessions.put(
    Session.fromUserMessage('A poem about rain, “please” 雨 \u0085\u001b[0m'),
  )
  await store.sessions.put(renamed(kept, `prompt-${prompt}`))
  const branches: Session[] = []
  for (const [label, text] of [
    ['long', 'Rain, rain,\nand rain.'],
    ['short', 'Rain.'],
  ] as const) {
    const written = input.fork(label).append(
      {
        kind: 'assistant',
        reasoning: 'Hm.',
        toolCalls: [{ id: `call-${label}`, name: 'rhyme', args: { word: 'rain', '10': 1, a: [1e21, -0.5] } }],
        model: 'm-1',
        by: `Poets/${label}`,
        prompt,
        usage: { inputTokens: 10, outputTokens: 5, cost: 0.25 },
      },
      {
        kind: 'tool-result',
        callId: `call-${label}`,
        tool: 'rhyme',
        args: { word: 'rain' },
        outcome: { kind: 'value', value: label === 'long' ? 'x'.repeat(40_000) : ['brain', null] },
        by: `Poets/${label}`,
      },
      { kind: 'assistant', text, model: 'm-1', by: `Poets/${label}`, prompt, usage: { outputTokens: 3 } },
    )
    branches.push(await store.sessions.put(written))
  }
  const [long, short] = branches as [Session, Session]
  const merged = await long.merge(short, { policy: 'ours' })
  const out = await store.sessions.put(
    merged.append(
      { kind: 'verdict', verdict: 'accept', subject: long.id, reason: 'it rhymes', score: 0.9 },
      { kind: 'verdict', verdict: 'reject', subject: short.id, reason: 'too short' },
      { kind: 'assistant', text: 'Done.', by: 'Poets' },
    ),
  )
  await store.runs.create({ id: 'run-1', input: input.id, output: out.id, data: { workflow: 'Poets' } })
  const log = await store.runs.claim('run-1', 'me', 60_000)
  await log.append([
    { kind: 'intend', entry: { key: 'k1', occurrence: 0, kind: 'model', request: { text: '雨' } } },
    { kind: 'conclude', key: 'k1', occurrence: 0, outcome: { answer: ['Rain.', 'y'.repeat(20_000)] } },
    { kind: 'intend', entry: { key: 'k2', occurrence: 0, kind: 'tool', request: null } },
    { kind: 'update', change: { status: 'done', release: true } },
  ])
  return { store, out, branches }
}

/** The same session under another id. */
export function renamed(session: Session, id: string): Session {
  return sessionOf({ ...valueFrom(session), id })
}

export async function textOf(lines: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const line of lines) text += line
  return text
}
