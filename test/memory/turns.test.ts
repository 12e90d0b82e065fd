import { expect, test } from 'vitest'
import { rejectionsOf, sessionScope, turnsOf } from '../../src/memory/turns.ts'
import { Session } from '../../src/session/session.ts'

const talk = Session.create('system', 'You are terse.').append(
  { kind: 'user', text: 'Where is the key?' },
  {
    kind: 'assistant',
    text: 'I will look.',
    by: 'House/finder',
    toolCalls: [{ id: '1', name: 'look', args: { in: 'hall' } }],
  },
  {
    kind: 'tool-result',
    callId: '1',
    tool: 'look',
    args: { in: 'hall' },
    outcome: { kind: 'error', error: 'dark', message: 'no light in the hall' },
  },
  { kind: 'tool-result', callId: '2', tool: 'look', outcome: { kind: 'value', value: 'a mat' } },
  {
    kind: 'route',
    candidates: [{ name: 'cellar' }, { name: 'attic' }],
    choice: 'attic',
    reason: 'it is dry',
  },
)

test('what was said, decided and what failed are entries; prompts and plain results are not', () => {
  expect(turnsOf(talk).map(({ category, text }) => [category, text])).toEqual([
    ['turn', 'user: Where is the key?'],
    ['turn', 'finder: I will look.'],
    ['failure', 'The tool look failed with {"in":"hall"}: dark: no light in the hall'],
    ['decision', 'attic was chosen of cellar, attic: it is dry'],
  ])
})

test('an entry says which chunk it came from, and turns stand beside each other', () => {
  const [first, second] = turnsOf(talk)
  expect(first?.source).toEqual({
    session: talk.id,
    chunks: [talk.chunks.at(1)?.id],
    series: sessionScope(talk),
    index: 1,
  })
  expect(second?.source?.series).toBe(first?.source?.series)
  expect(second?.source?.by).toBe('House/finder')
})

test('the keys of a session are those of its forks and of what it is merged into', async () => {
  const keys = (session: Session) => turnsOf(session).map(({ key }) => key)
  const [left, right] = talk.forks(['left', 'right'])
  const merged = await left.user('On the left.').merge(right.user('On the right.'))
  expect(keys(talk.fork('x'))).toEqual(keys(talk))
  expect(keys(merged).slice(0, 4)).toEqual(keys(talk))
  expect(new Set(keys(merged)).size).toBe(6)
  expect(sessionScope(merged)).toBe(sessionScope(talk))
})

test('a long answer is kept in pieces, each with a key of its own, and loses nothing', () => {
  const words = Array.from({ length: 3_000 }, (_, i) => `word${i}`)
  const entries = turnsOf(Session.fromUserMessage(words.join(' ')))
  expect(entries.length).toBeGreaterThan(5)
  expect(new Set(entries.map(({ key }) => key)).size).toBe(entries.length)
  const text = entries.map(entry => entry.text).join(' ')
  expect(words.filter(word => !text.includes(word))).toEqual([])
})

for (const [what, subject] of [
  ['its branch', () => 'left'],
  ['its session', (left: Session) => left.id],
] as const) {
  test(`what a branch said that a verdict rejects by ${what} is marked, and the others not`, async () => {
    const left = talk.fork('left').user('Try the well.')
    const right = talk.fork('right').user('Try the roof.')
    const merged = (await left.merge(right)).append({
      kind: 'verdict',
      verdict: 'reject',
      subject: subject(left),
      reason: 'it is dry',
    })
    const marked = turnsOf(merged).filter(({ standing }) => standing === 'rejected')
    expect(marked.map(({ text }) => text)).toEqual(['user: Try the well.'])
    const accepted = merged.append({ kind: 'verdict', verdict: 'accept', subject: subject(left) })
    expect(rejectionsOf(accepted).chunks.size).toBe(0)
  })
}

test('a run that goes on after a crash says the same at other times, and its entries have the keys they had', async () => {
  const asked = Session.fromUserMessage('Where is the key?')
  const goOn = async (at: number) => {
    const [hall, attic] = asked.forks(['hall', 'attic'])
    const looked = (session: Session) => session.append({ kind: 'assistant', text: 'Not here.', at })
    const merged = await looked(looked(hall)).merge(looked(attic))
    return merged.append({ kind: 'note', name: 'once', data: at }, { kind: 'user', text: 'Go on.', at })
  }
  const [before, after] = [await goOn(1_000), await goOn(2_000)]
  const keys = (session: Session) => turnsOf(session).map(({ key }) => key)
  expect(after.head).not.toBe(before.head)
  expect(sessionScope(after)).toBe(sessionScope(before))
  expect(keys(after)).toEqual(keys(before))
  // Equal words are kept apart by their branch and their number.
  expect(new Set(keys(before)).size).toBe(5)
})
