import { expect } from 'vitest'
import type { Message } from '../../src/session/message.ts'

/** What the strictest of the providers asks of a conversation. */
export function expectValidForEveryProvider(messages: readonly Message[]): void {
  const firstOther = messages.findIndex(message => message.role !== 'system')
  const body = firstOther < 0 ? [] : messages.slice(firstOther)
  expect(
    body.some(message => message.role === 'system'),
    'a system message after others',
  ).toBe(false)
  const seen = new Set<string>()
  const expected: [callId: string, name: string][] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      const [callId, name] = expected.shift() ?? []
      expect(message.callId, 'a tool message answers the next open call').toBe(callId)
      expect(message.tool, 'a tool message names the tool of its call').toBe(name)
      continue
    }
    expect(expected, 'calls left without an answer').toEqual([])
    expect(message.content.length, 'an empty message').toBeGreaterThan(0)
    const says = message.content.some(part => !('text' in part) || part.text !== '')
    expect(says, 'a message that says nothing').toBe(true)
    for (const part of message.content) {
      if (part.type === 'text') expect(part.text).not.toBe('')
      if (part.type !== 'tool-call') continue
      expect(seen.has(part.id), `call id ${part.id} twice`).toBe(false)
      seen.add(part.id)
      expect(part.name, 'a name that providers take').toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      expected.push([part.id, part.name])
    }
  }
  expect(expected, 'calls left without an answer').toEqual([])
}
