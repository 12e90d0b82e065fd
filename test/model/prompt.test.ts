import { describe, expect, it } from 'vitest'
import { type Dialect, dialectOf } from '../../src/model/drivers/ai-sdk/dialect.ts'
import { type Conversations, toPrompt } from '../../src/model/drivers/ai-sdk/prompt.ts'
import type { AiSdkModel } from '../../src/model/drivers/ai-sdk/types.ts'
import type { Message } from '../../src/session/message.ts'

const dialect: Dialect = {
  version: 'v4',
  callIds: undefined,
  systemMessages: true,
  textFiles: /./,
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

describe('a conversation that ends with an answer', () => {
  const answer: Message = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] }
  const last = (provider: string, modelId: string, messages: Message[]) => {
    const model = { specificationVersion: 'v4', provider, modelId } as unknown as AiSdkModel
    return toPrompt(messages, dialectOf(model), true).at(-1)
  }

  it('is given a last word for models that would refuse it, wherever they are rented', () => {
    const goOn = { role: 'user', content: [{ type: 'text', text: 'Go on, as your instructions say.' }] }
    expect(last('anthropic.messages', 'claude-opus-5-5', [user('a'), answer])).toEqual(goOn)
    expect(last('openai.chat', 'anthropic/claude-sonnet-5', [user('a'), answer])).toEqual(goOn)
    expect(last('amazon-bedrock', 'anthropic.claude-v9', [user('a'), answer])).toEqual(goOn)
  })

  it('stays as it is for others, and so does one that ends with a question or a result', () => {
    expect(last('openai.responses', 'gpt-5.5', [user('a'), answer])).toMatchObject({ role: 'assistant' })
    const asked = last('anthropic.messages', 'claude-opus-5-5', [user('a'), answer, user('b')])
    expect(asked).toMatchObject({ role: 'user', content: [{ text: 'b' }] })
    expect(last('anthropic.messages', 'claude-opus-5-5', [user('a'), ...round(0)])).toMatchObject({
      role: 'tool',
    })
  })

  it('leaves nothing of it in later requests', () => {
    const before: Conversations = new WeakMap()
    const strict = { ...dialect, lastWord: true }
    const messages = [user('a'), answer]
    expect(toPrompt(messages, strict, true, before)).toHaveLength(3)
    const grown = [...messages, user('b')]
    expect(toPrompt(grown, strict, true, before)).toEqual(toPrompt(grown, strict, true))
    expect(toPrompt(grown, strict, true, before)).toHaveLength(3)
  })
})
