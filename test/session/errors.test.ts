import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { note, refusal, says } from './make.ts'

const session = Session.fromUserMessage('hi').append(says('hello'))
const append = (...chunks: unknown[]) => refusal(() => session.append(...(chunks as never[])))

describe('a chunk that cannot be recorded', () => {
  it.each([
    [null, 'chunk must be an object with a kind, not null.'],
    ['hi', 'chunk must be an object with a kind, not "hi".'],
    [[note('a')], 'chunk must be an object with a kind, not an array of 1.'],
    [new Date(0), 'chunk must be an object with a kind, not a Date.'],
    [{}, 'chunk.kind is undefined; it must be one of system, user, assistant, tool-result'],
    [{ kind: 'toString' }, 'chunk.kind is "toString"; it must be one of'],
    [{ kind: 'user' }, 'chunk.content: is missing'],
    [{ kind: 'user', content: '' }, 'chunk.content: is empty; give it text, an image or a file'],
    [{ kind: 'user', content: [] }, 'chunk.content: is empty'],
    [{ kind: 'user', text: 42 }, 'chunk.content: must be a string or an array of parts, not 42'],
    [
      { kind: 'user', content: ['hi'] },
      'chunk.content[0]: must be an object whose type is text, image, file, not "hi"',
    ],
    [{ kind: 'user', content: [{ type: 'video' }] }, 'not type "video"'],
    [{ kind: 'user', content: [{ type: 'tool-call', id: 'c', name: 'n', args: 1 }] }, 'not type "tool-call"'],
    [
      { kind: 'user', content: [{ type: 'text', text: 1 }] },
      'chunk.content[0].text: must be a string, not 1',
    ],
    [{ kind: 'user', content: [{ type: 'image', mediaType: 'image/png' }] }, 'must have either data or url'],
    [
      { kind: 'user', content: [{ type: 'image', mediaType: 'i', data: '', url: 'u' }] },
      'must have either data or url',
    ],
    [
      { kind: 'user', content: [{ type: 'file', mediaType: 'i', data: 'not base64' }] },
      'must be a Uint8Array or padded base64',
    ],
    [{ kind: 'assistant' }, 'chunk.content: is missing'],
    [{ kind: 'assistant', text: '' }, 'chunk.content: is empty'],
    [{ kind: 'assistant', toolCalls: [{ id: 'c', name: 'n' }] }, 'chunk.content[0].args: is missing'],
    [
      { kind: 'assistant', toolCalls: ['c', 'c'].map(id => ({ id, name: 'n', args: {} })) },
      'has two tool calls with the same id; give each its own',
    ],
    [
      { kind: 'assistant', text: 'x', usage: { inputTokens: -1 } },
      'chunk.usage.inputTokens: must be a number of at least 0, not -1',
    ],
    [
      { kind: 'assistant', text: 'x', usage: { tokens: 1 } },
      'chunk.usage.tokens: is not a field here (known: inputTokens',
    ],
    [
      { kind: 'tool-result', callId: 'c', tool: 't', outcome: { kind: 'value' } },
      'chunk.outcome.value: is missing',
    ],
    [
      { kind: 'tool-result', callId: 'c', tool: 't', outcome: 'ok' },
      'whose kind is value, error, denied, not "ok"',
    ],
    [
      { kind: 'memory', op: 'steal', store: 's' },
      'must be one of recall, remember, commit, forget, not "steal"',
    ],
    [{ kind: 'compress', replaced: [], summary: 's' }, 'chunk.replaced: must name at least one chunk'],
    [
      { kind: 'compress', replaced: ['x'], summary: '' },
      'chunk.replaced[0]: must be a sha256 in lower-case hex, not "x"',
    ],
    [{ kind: 'note', name: 'n', at: Number.NaN }, 'chunk.at: must be a finite number, not NaN'],
    [{ kind: 'note', name: 'n', at: '2026' }, 'chunk.at: must be a finite number, not "2026"'],
    [
      { kind: 'note', name: 'n', at: 1e300 },
      'chunk.at: must be a time in milliseconds that a date can name, not 1e+300',
    ],
    [{ kind: 'note', name: 'n', data: { when: new Date(0) } }, 'chunk.data.when: a Date is not JSON'],
    [{ kind: 'note', name: 'n', extras: [1] }, 'chunk.extras: must be an object, not an array of 1'],
    [{ kind: 'note', name: 'n', mood: 'good' }, 'chunk.mood: is not a field here'],
    [{ kind: 'note', name: 'n', id: 'x' }, 'chunk.id: is set by the session; leave it out'],
    [{ kind: 'note', name: 'n', branch: 'x' }, 'chunk.branch: is set by the session; leave it out'],
    [JSON.parse('{"kind":"note","name":"n","__proto__":{"by":"x"}}'), 'chunk.__proto__: is not a field here'],
  ])('%j is refused, with the value and the fix', (chunk, message) => {
    const error = append(chunk)
    expect(error.code).toBe('invalid-chunk')
    expect(error.message).toContain(message)
  })

  it('is told everything that is wrong with it at once', () => {
    const error = append({ kind: 'tool-result', tool: '', outcome: {}, durationMs: -1, colour: 'red' })
    expect([...(error.data.paths as string[])].sort()).toEqual(
      ['callId', 'colour', 'durationMs', 'outcome', 'tool'].map(name => `chunk.${name}`),
    )
  })

  it('leaves nothing half-done, and is named by its place among several', () => {
    const error = append(note('good'), { kind: 'note' })
    expect(error.message).toContain('chunk 1.name: is missing')
    expect(session.length).toBe(2)
    expect(append(note('good'), note('good'), 7).message).toContain('chunk 2 must be an object')
  })

  it('from another chain is told to merge', () => {
    for (const chunk of [Session.fromUserMessage('other').chunks.at(0), session.chunks.at(0)]) {
      const error = append(note('a'), chunk)
      expect(error.code).toBe('foreign-chunk')
      expect(error.message).toContain('chunk 1 already belongs to a session')
      expect(error.message).toContain('Use merge to join two sessions')
    }
    expect(session.append({ ...(session.chunks.at(0) as never as object) } as never).length).toBe(3)
  })
})

describe('an operation with wrong arguments', () => {
  const call = (run: () => unknown) => refusal(run).message

  it('refuses to create a session of no kind, or from nothing', () => {
    expect(call(() => Session.create('robot' as never))).toContain(
      'created as user, system or empty, not "robot"',
    )
    expect(call(() => Session.create('empty', 'text'))).toContain('takes no text, but got "text"')
    expect(call(() => Session.create('user'))).toContain('content: is missing')
    expect(call(() => Session.fromUserMessage(''))).toContain('is empty')
    expect(call(() => Session.fromUserMessage(undefined as never))).toContain('content: is missing')
    expect(call(() => Session.fromAgentPrompt(7 as never))).toContain(
      'must be a string or an array of parts, not 7',
    )
  })

  it.each(['', '#1', 7, null, ['a'], true])('refuses to fork with %j', label => {
    const error = refusal(() => session.fork(label as never))
    expect(error.code).toBe('invalid-argument')
    expect(error.message).toMatch(/not ("|7|null|an array|true)/)
  })

  it('refuses labels and counts of forks that make no sense', () => {
    expect(call(() => session.fork({ label: '#1' }))).toContain('not "#1"')
    expect(call(() => session.fork({ workspace: 'mine' as never }))).toContain(
      "'own' or 'shared', not \"mine\"",
    )
    for (const count of [-1, 1.5, Number.NaN])
      expect(call(() => session.forks(count))).toContain(`not ${count}`)
    expect(call(() => session.forks('ab' as never))).toContain('a whole number or a list of labels, not "ab"')
    expect(call(() => session.forks(['a', 'b', 'a']))).toContain('the label "a" twice')
    expect(call(() => session.forks(['a', 7 as never]))).toContain('not 7')
    expect(session.fork().branch).toBe('#0')
  })

  it('refuses options that are none', () => {
    const wrong = { by: 7, label: '', at: 'now', extras: { when: new Date(0) } }
    for (const [name, value] of Object.entries(wrong)) {
      const error = refusal(() => session.detach({ [name]: value } as never))
      expect(error.message).toContain(`detach: ${name}`)
    }
    for (const odd of [null, 'ann', [1]]) {
      expect(call(() => session.detach(odd as never))).toContain('detach: options must be an object')
      expect(call(() => session.rewind(0, odd as never))).toContain('rewind: options must be an object')
      expect(call(() => session.to('local', './', odd as never))).toContain('to: options must be an object')
    }
  })

  it('refuses a place without a name', () => {
    expect(call(() => session.to(''))).toContain('chunk.backend: must be a non-empty string, not ""')
    expect(call(() => session.to('local', 7 as never))).toContain('chunk.spec: must be an object, not 7')
    expect(call(() => session.to('local', ''))).toContain('chunk.spec: must be a non-empty string')
  })

  it('refuses to compare with what is no session', async () => {
    await expect(session.diff({} as never)).rejects.toThrow('Expected a Session, not {  }.')
  })
})
