import { describe, expect, it } from 'vitest'
import type { Dialect } from '../../src/model/drivers/ai-sdk/dialect.ts'
import { type Conversations, toPrompt } from '../../src/model/drivers/ai-sdk/prompt.ts'
import type { Message } from '../../src/session/message.ts'

const dialect: Dialect = {
  version: 'v4',
  callIds: undefined,
  systemMessages: true,
  textFiles: true,
  mediaInResults: true,
  cachedBesideInput: false,
  cacheMarker: { test: { mark: true } },
} as unknown as Dialect

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] })
const round = (n: number): Message[] => [
  { role: 'assistant', content: [{ type: 'tool-call', id: `c${n}`, name: 'add', args: { n } }] },
  { role: 'tool', callId: `c${n}`, tool: 'add', outcome: { kind: 'value', value: n } },
]
const system: Message = { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }
const conversation = [system, user('a'), user('b'), ...round(0), ...round(1), user('c'), ...round(2)]

describe('a conversation that grows', () => {
  it('gives every request the prompt that it would have alone', () => {
    const before: Conversations = new WeakMap()
    for (let end = 1; end <= conversation.length; end++) {
      const messages = conversation.slice(0, end)
      expect(toPrompt(messages, dialect, true, before)).toEqual(toPrompt(messages, dialect, true))
    }
  })

  it('is converted once, and what requests share cannot be changed by one of them', () => {
    const before: Conversations = new WeakMap()
    const first = toPrompt(conversation, dialect, false, before)
    const second = toPrompt([...conversation, ...round(3)], dialect, false, before)
    expect(second[2]).toBe(first[2])
    const { content } = first[2] as { content: unknown }
    expect(() => (content as unknown[]).push('more')).toThrow(TypeError)
    expect(() => Object.assign(first[2] as object, { role: 'user' })).toThrow(TypeError)
  })

  it('is converted again from where it went another way', () => {
    const before: Conversations = new WeakMap()
    toPrompt(conversation, dialect, true, before)
    const rewound = [...conversation.slice(0, 3), ...round(7), user('d'), ...round(8)]
    expect(toPrompt(rewound, dialect, true, before)).toEqual(toPrompt(rewound, dialect, true))
    const shorter = conversation.slice(0, 2)
    expect(toPrompt(shorter, dialect, true, before)).toEqual(toPrompt(shorter, dialect, true))
  })
})
