import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Session } from '../../src/session/session.ts'
import { anyChunk } from './arbitrary.ts'
import { anySteps, grow } from './tree.ts'
import { expectValidForEveryProvider } from './valid-messages.ts'

describe('messages', () => {
  it('are valid for every provider on any tree of forks, merges, rewinds and summaries', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async steps => {
        for (const session of await grow(steps)) expectValidForEveryProvider(session.messages())
      }),
      { numRuns: 400 },
    )
  })

  it('are valid whatever chunks follow each other, and the same after a round trip', () => {
    fc.assert(
      fc.property(fc.array(anyChunk, { maxLength: 12 }), chunks => {
        const session = Session.create('empty').append(...chunks)
        expectValidForEveryProvider(session.messages())
        expect(Session.fromJSONL(session.toJSONL()).messages()).toEqual(session.messages())
      }),
    )
  })

  it.each([
    ['a system message late', [message('user'), message('system')]],
    ['an unanswered call', [call('a')]],
    ['an answer to nothing', [tool('a')]],
    ['answers out of order', [call('a', 'b'), tool('b'), tool('a')]],
    ['an answer that comes late', [call('a'), message('user'), tool('a')]],
    ['a call id twice', [call('a'), tool('a'), call('a'), tool('a')]],
    ['an empty message', [{ role: 'user' as const, content: [] }]],
    ['an empty text', [{ role: 'user' as const, content: [{ type: 'text' as const, text: '' }] }]],
  ])('are not valid with %s, or the checker is worth nothing', (_, messages) => {
    expect(() => expectValidForEveryProvider(messages)).toThrow()
  })
})

function message(role: 'user' | 'system') {
  return { role, content: [{ type: 'text' as const, text: 'x' }] }
}

function call(...ids: string[]) {
  const content = ids.map(id => ({ type: 'tool-call' as const, id, name: 'look', args: {} }))
  return { role: 'assistant' as const, content }
}

function tool(callId: string) {
  return { role: 'tool' as const, callId, tool: 'look', outcome: { kind: 'value' as const, value: 1 } }
}
