import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, type Json } from '../../src/base/json.ts'
import type { Chunk, ChunkInput, ChunkKind } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { anyChunk, anyChunks, anyLabel, anyObject, chunkOf, fieldsOf, kinds } from './arbitrary.ts'
import { calls, compressed, note, result, says, user } from './make.ts'

const empty = Session.create('empty')

/** The fields an agent perceives, by kind; every other field is evidence only. */
const perceived: { [K in ChunkKind]?: readonly string[] } = {
  system: ['content'],
  user: ['content'],
  assistant: ['content'],
  'tool-result': ['tool', 'args', 'outcome'],
  memory: ['injected'],
  compress: ['summary'],
}
const evidence = kinds.filter(kind => perceived[kind] === undefined)

describe.each(kinds)('the state after a %s chunk', kind => {
  it('moves with the fields that an agent perceives and with no other', () => {
    const fields = { at: fc.nat(99), by: anyLabel, extras: anyObject, ...fieldsOf[kind].fields }
    const { callId: _, ...told } = fields as Record<string, fc.Arbitrary<unknown>>
    const complete = fc.record(fields)
    fc.assert(
      fc.property(complete, complete, fc.constantFrom(...Object.keys(told)), (one, other, name) => {
        const first = empty.append({ kind, ...one } as ChunkInput)
        const second = empty.append({
          kind,
          ...one,
          [name]: (other as Record<string, unknown>)[name],
        } as ChunkInput)
        expect(second.state === first.state).toBe(perceptible(first) === perceptible(second))
      }),
      { numRuns: 100 },
    )
  })
})

describe('the state of a session', () => {
  it('stays where it is when evidence is added, at any place', () => {
    const silent = fc.oneof(...evidence.map(chunkOf))
    fc.assert(
      fc.property(anyChunks, anyChunks, silent, (before, after, added) => {
        const plain = empty.append(...before, ...after)
        expect(empty.append(...before, added, ...after).state).toBe(plain.state)
      }),
    )
  })

  it('differs when what was perceived differs, in content or in order', () => {
    fc.assert(
      fc.property(anyChunks, anyChunks, (one, other) => {
        const first = empty.append(...one)
        const second = empty.append(...other)
        expect(first.state === second.state).toBe(perceptible(first) === perceptible(second))
      }),
    )
    expect(empty.append(user('a'), user('b')).state).not.toBe(empty.append(user('b'), user('a')).state)
  })

  it('ignores the call ids that a provider invents, and knows which call a result answers', () => {
    const turn = (a: string, b: string, answered: string) =>
      empty.append(
        { kind: 'assistant', toolCalls: [a, b].map(id => ({ id, name: 'look', args: {} })) },
        { kind: 'tool-result', callId: answered, tool: 'look', outcome: { kind: 'value', value: 1 } },
      ).state
    expect(turn('call_x', 'call_y', 'call_y')).toBe(turn('1', '2', '2'))
    expect(turn('1', '2', '1')).not.toBe(turn('1', '2', '2'))
  })

  it('covers neither where it is placed nor the files there', () => {
    const placed = (path: string, tree: string) =>
      empty.append({
        kind: 'placement',
        backend: 'local',
        spec: path,
        workspace: { path, tree: tree.repeat(64) },
      }).state
    expect(new Set([placed('/a', '0'), placed('/b', '0'), placed('/a', '1'), empty.state]).size).toBe(1)
  })

  it('is distinct for every label of a fork, and that of what was forked without one', () => {
    fc.assert(
      fc.property(anyChunks, anyChunk, (chunks, next) => {
        const session = Session.create('empty').append(...chunks)
        const [first, second] = session.forks(2) as [Session, Session]
        const siblings = [session, session.fork('a'), session.fork('b'), first.fork('c')]
        expect(new Set(siblings.map(each => each.state)).size).toBe(siblings.length)
        const grown = siblings.map(each => each.append(next))
        expect(new Set(grown.map(each => each.state)).size).toBe(siblings.length)
        expect(session.fork('a').append(next).state).toBe(grown[1]?.state)
        expect([first, second].map(each => each.append(next).state)).toEqual(
          [grown[0], grown[0]].map(each => each?.state),
        )
        expect(second.fork('c').append(next).state).toBe(grown[3]?.state)
      }),
      { numRuns: 50 },
    )
  })

  it('is the same on a fork of an equal session, and after detach', () => {
    const twin = () => Session.fromUserMessage('go')
    expect(twin().fork().append(says('x')).state).toBe(twin().fork().append(says('x')).state)
    expect(twin().fork('a').detach().state).toBe(twin().fork('a').state)
  })
})

describe('the state after a summary', () => {
  const told = (...more: ChunkInput[]) => empty.append(user('a'), ...more, says('b'), user('c'))

  it('is the same when the same was summarised, whatever evidence lay between', () => {
    const plain = compressed(told(), [0, 1])
    expect(compressed(told(note('x')), [0, 2]).state).toBe(plain.state)
    expect(compressed(told(note('x')), [0, 1, 2]).state).toBe(plain.state)
  })

  it('differs when other chunks were summarised, or when it stands elsewhere', () => {
    const noted = empty.append(note('w'), user('a'), note('x'), says('b'), note('y'), user('c'))
    const states = [[1], [3], [5], [1, 3], [3, 5], [0], [2], [4]].map(
      indexes => compressed(noted, indexes).state,
    )
    expect(new Set(states).size).toBe(states.length)
    expect(compressed(noted, [2, 3]).state).toBe(compressed(noted, [3]).state)
    expect(compressed(noted, [3], 'otherwise').state).not.toBe(compressed(noted, [3]).state)
  })

  it('moves on with results of a turn that it cut in two', () => {
    const turn = compressed(empty.append(user('a'), calls('c1')), [0])
    expect(turn.append(result('c1')).state).not.toBe(turn.append(result('c1', 'other')).state)
  })
})

/** An independent reading of what an agent perceives. */
function perceptible(session: Session): string {
  const senses: Json[] = []
  let open: string[] = []
  for (const chunk of session.chunks) {
    if (chunk.kind === 'user') open = []
    if (chunk.kind === 'assistant')
      open = chunk.content.flatMap(part => (part.type === 'tool-call' ? [part.id] : []))
    const answers = chunk.kind === 'tool-result' ? open.indexOf(chunk.callId) : null
    const sensed = sense(chunk)
    if (sensed !== undefined) senses.push([chunk.kind, answers, sensed])
  }
  return canonicalJson(senses)
}

function sense(chunk: Chunk): Json | undefined {
  const names = perceived[chunk.kind]
  if (names === undefined || (chunk.kind === 'memory' && !chunk.injected)) return undefined
  const all = JSON.parse(JSON.stringify({ ...chunk }))
  for (const part of [...(all.content ?? []), ...(all.outcome?.content ?? [])]) {
    delete part.extras
    if (part.type === 'tool-call') delete part.id
  }
  return names.map(name => all[name] ?? null)
}
