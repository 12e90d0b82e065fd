import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { firstState } from '../../src/session/first-state.ts'
import { Session, valueFrom } from '../../src/session/session.ts'
import { compressed, user } from './make.ts'

const stateOf = (session: Session) => firstState(valueFrom(session))

it('the state of a recorded session by the first rule is what it was', () => {
  const text = readFileSync(join(import.meta.dirname, '../fixtures/session-v1.jsonl'), 'utf8')
  const session = Session.fromJSONL(text)
  expect(stateOf(session)).toBe('8c175d8b8b3e61786d21661e2de771aeb955f57b1c4bf00a9069c5ccdfaac896')
})

it('by the first rule forks without a label, the backend and the files count', () => {
  const session = Session.create('empty').append(user('a'), user('b'))
  const placed = (tree: string) =>
    session.append({ kind: 'placement', backend: 'local', workspace: { tree: tree.repeat(64) } })
  const all = [
    session,
    ...session.forks(2),
    session.fork('x'),
    placed('0'),
    placed('1'),
    compressed(session, [0]),
  ]
  expect(new Set(all.map(stateOf)).size).toBe(all.length)
})
