import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { note, refusal, says, spoken, user } from './make.ts'

const golden = readFileSync(new URL('../fixtures/session-v1.jsonl', import.meta.url), 'utf8')
const odd = JSON.parse(
  '{"__proto__":{"a":1},"10":"ten","9":"nine","toJSON":null,"constructor":[1e21,5e-324,-1.5]}',
)

describe('a session file of version 1', () => {
  const session = Session.fromJSONL(golden)

  it('reads as the values it was written from', () => {
    expect(session.verify()).toEqual({ ok: true, checked: 14 })
    expect(session.head).toBe('368151988aa76b3a293301faeaba4e5bb91292876aba95695c43a9b0da83c50f')
    expect(session.state).toBe('094968807c00f45756c5bd59d5c990ec3eee48726d7d83c2ae4e24af14dd4159')
    expect(session.lineage).toEqual({
      parents: [],
      operation: 'detach',
      by: 'judge',
      at: 1767225600016,
      extras: { odd },
    })
    expect(session.usage).toMatchObject({ inputTokens: 23, outputTokens: 9, totalTokens: 32, cost: 0.001 })
    expect(session.placement).toEqual({ backend: 'local', spec: { path: './', net: false } })
    expect(session.pending.map(each => each.kind)).toEqual(['approval'])
    expect(session.chunks.at(1)).toMatchObject({
      at: 1767225600001,
      content: [
        { type: 'text', text: 'Odd: \u2028 \u2029 \u0085 \u0000 \ud800 😀 é "\\' },
        { type: 'image', mediaType: 'image/png', data: 'AAH+/w==' },
        {
          type: 'file',
          mediaType: 'text/plain',
          url: 'https://example.com/a.txt',
          name: 'a.txt',
          extras: { cache: true },
        },
      ],
    })
    expect(session.chunks.at(-1)).toMatchObject({ kind: 'note', data: odd, extras: odd })
    expect(JSON.stringify(session.chunks.at(-1))).toContain('"__proto__":{"a":1}')
    expect(spoken(session).slice(2)).toEqual([
      'user: Summary of the conversation so far:\nLooked once.',
      'user: You know: likes tea.',
      'assistant: Done.',
    ])
  })

  it('is written again byte for byte', () => {
    expect(session.toJSONL()).toBe(golden)
  })

  it('keeps characters that end a line for some readers escaped', () => {
    expect(golden).not.toMatch(/[\u0085\u2028\u2029]/)
    expect(golden.trimEnd().split('\n')).toHaveLength(16)
  })
})

describe('fromJSONL', () => {
  const text = Session.create('empty', undefined, { at: 1 }).append(user('a'), says('b'), note('c')).toJSONL()
  const lines = text.trimEnd().split('\n')
  const edited = (index: number, line: string) => lines.with(index, line).join('\n').concat('\n')

  it('reads an empty session, CRLF line ends, blank lines and a byte order mark', () => {
    const empty = Session.create('empty').fork('a')
    expect(Session.fromJSONL(empty.toJSONL())).toMatchObject({
      id: empty.id,
      length: 0,
      branch: 'a',
      state: empty.state,
    })
    expect(Session.fromJSONL(`\ufeff${lines.join('\r\n\r\n')}`).toJSONL()).toBe(text)
  })

  it('refuses what is not text, an empty file, and more than one session', () => {
    expect(refusal(() => Session.fromJSONL(undefined as never)).message).toContain('not undefined')
    for (const nothing of ['', '\n\n', '  ']) {
      expect(refusal(() => Session.fromJSONL(nothing)).message).toContain('empty; there is nothing to read')
    }
    const error = refusal(() => Session.fromJSONL(text + text))
    expect(error.code).toBe('format-malformed')
    expect(error.message).toContain('holds 2 sessions and fromJSONL reads one; use readSessions')
  })

  it.each([
    ['{"type":"chunk"', 'Line 3 is not JSON'],
    ['"hi"', 'Line 3 must be a JSON object'],
    ['[]', 'Line 3 must be a JSON object'],
    ['{"type":"chonk"}', 'Line 3 has the type "chonk"; known are session, chunk, end'],
    ['{}', 'Line 3 has the type undefined'],
    ['{"type":"chunk"}', 'line 3.id: is missing'],
    ['{"type":"chunk","id":"xyz","chunk":{}}', 'line 3.id: must be a sha256 in lower-case hex, not "xyz"'],
    [`{"type":"chunk","id":"${'a'.repeat(64)}","chunk":{"kind":"x"}}`, 'line 3.kind is "x"'],
    [`{"type":"chunk","id":"${'a'.repeat(64)}","chunk":{"kind":"note","at":1}}`, 'line 3.name: is missing'],
    [`{"type":"chunk","id":"${'a'.repeat(64)}","chunk":{"kind":"note","name":"n"}}`, 'line 3.at: is missing'],
    [
      `{"type":"chunk","id":"${'a'.repeat(64)}","chunk":null}`,
      'line 3 must be an object with a kind, not null',
    ],
    ['{"type":"end"}', 'line 3.session: is missing'],
  ])('refuses the middle line %s by its number', (line, message) => {
    const error = refusal(() => Session.fromJSONL(edited(2, line)))
    expect(['format-malformed', 'invalid-chunk']).toContain(error.code)
    expect(error.message).toContain(message)
  })

  it('refuses a file that does not start with a session, and one that goes on after its end', () => {
    expect(refusal(() => Session.fromJSONL(lines.slice(1).join('\n'))).message).toContain(
      'Line 1 comes before any session',
    )
    expect(refusal(() => Session.fromJSONL(`${text}${lines[1]}\n`)).message).toContain(
      'Line 6 comes before any session',
    )
    expect(refusal(() => Session.fromJSONL('hello')).message).toContain('Line 1 is not JSON')
  })

  it('refuses a newer version, another format and an odd version by name', () => {
    const opened = (change: object) => {
      const record = { ...JSON.parse(lines[0] as string), ...change }
      return refusal(() => Session.fromJSONL(edited(0, JSON.stringify(record))))
    }
    const newer = opened({ version: 3, news: 'unheard of' })
    expect(newer.code).toBe('format-newer')
    expect(newer.message).toContain('session format 3, and this openrath reads up to 2: update openrath')
    expect(newer.data).toEqual({ version: 3, reads: 2 })
    expect(opened({ format: 'other' }).message).toContain(
      'Line 1 has the format "other"; this reads openrath/session',
    )
    expect(opened({ version: '1' }).message).toContain('has the version "1"; a whole number from 1 is needed')
    expect(opened({ version: 0 }).message).toContain('has the version 0; a whole number from 1 is needed')
    expect(opened({ colour: 'red' }).message).toContain('line 1.colour: is not a field here')
    expect(opened({ after: 'a'.repeat(64) }).message).toContain('which does not come before it in this file')
  })
})
