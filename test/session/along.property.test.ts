import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Along } from '../../src/session/along.ts'
import { type Session, valueFrom } from '../../src/session/session.ts'
import { anySteps, grow } from './tree.ts'

it('what is kept along chains is what going along each of them gives, in any order of asking', async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.array(fc.nat(1000), { maxLength: 20 }), async (steps, order) => {
      let looked = 0
      const kinds = new Along<string>('', (before, { kind }) => {
        looked++
        return kind === 'note' ? before : `${before} ${kind}`
      })
      const sessions = await grow(steps)
      const ask = (session: Session) => kinds.at(valueFrom(session).tip)
      for (const n of order) {
        const session = sessions[n % sessions.length] as Session
        const alone = session.chunks.filter(({ kind }) => kind !== 'note').map(({ kind }) => ` ${kind}`)
        expect(ask(session)).toBe(alone.join(''))
        looked = 0
        ask(session.user('more'))
        expect(looked).toBe(1)
      }
    }),
    { numRuns: 100 },
  )
})
