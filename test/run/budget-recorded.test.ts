import { describe, expect, it } from 'vitest'
import { Compressor } from '../../src/flow/compressor.ts'
import { Selector } from '../../src/flow/selector.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { BudgetLimits } from '../../src/run/budget.ts'
import { effect } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { elsewhere, fresh, say } from './journal/make.ts'
import { agentWith, failureOf, kinds } from './make.ts'

class Note extends Workflow {
  override description = 'Takes a note.'
  forward(session: Session) {
    return session.append({ kind: 'note', name: 'done' })
  }
}

/** Goes on until nothing is chosen. */
class Desk extends Workflow {
  readonly selector = new Selector({ model: scripted(() => '{"reason":"", "choice":"note"}') })
  readonly note = new Note()
  async forward(given: Session) {
    let session = given
    for (let round = 0; round < 9; round++) session = await (await this.selector(session, this.note))(session)
    return session
  }
}

const long = 'Nine words are said here again and again. '.repeat(60)
const compressor = (maxInput?: number) =>
  new Compressor('Keep the facts.', {
    model: scripted(() => 'short'),
    keep: 0,
    ...(maxInput && { maxInput }),
  })

describe('a budget of the run that ended its work ends a replay of it at the same point', () => {
  const cases: Record<string, [() => Workflow, BudgetLimits]> = {
    'of an agent': [() => agentWith(() => 'never').agent, { rounds: 0 }],
    'of an agent that would have compressed': [
      () => agentWith(() => 'never', { autoCompress: { above: 50 } }).agent,
      { rounds: 0 },
    ],
    'of a selector': [() => new Desk(), { rounds: 3 }],
    'of a compressor': [() => compressor(), { rounds: 0 }],
    'of a compressor, between two pieces': [() => compressor(200), { rounds: 2 }],
  }
  for (const [whose, [make, budget]] of Object.entries(cases)) {
    it(whose, async () => {
      const { runtime } = await fresh()
      const workflow = make()
      const pending = runtime.run(workflow, say(long).user('more'), { budget })
      const out = await pending
      expect(kinds(out)).toContain('error')
      const report = await runtime.replay(pending.runId, workflow)
      expect(report).toMatchObject({ ok: true, state: out.state, unasked: [] })
    })
  }
})

it('of one of two agents side by side ends that one in a replay, and not the other', async () => {
  class Pair extends Workflow {
    readonly one = agentWith(() => 'One.').agent
    readonly other = agentWith(() => 'Other.').agent
    async forward(session: Session) {
      const [first, second] = await Promise.all([this.one(session), this.other(session)])
      return first.merge(second)
    }
  }
  const { runtime } = await fresh()
  const pending = runtime.run(new Pair(), say(), { budget: { rounds: 1 } })
  const out = await pending
  // Nobody forked: on one branch, whoever was stopped last has left no answer.
  expect([out.stopped, out.text, out.chunks.find(chunk => chunk.kind === 'assistant')?.text]).toEqual([
    'budget-spent',
    '',
    'One.',
  ])
  const report = await runtime.replay(pending.runId, new Pair())
  expect(report).toMatchObject({ ok: true, state: out.state, unasked: [] })
})

it('does not take away from a resumed run what it has on record, whoever comes first now', async () => {
  const gate = Promise.withResolvers<string>()
  const costly = (text: string) => ({ text, usage: { inputTokens: 100, outputTokens: 0 } })
  class Pair extends Workflow {
    readonly slow = agentWith(async () => costly(await gate.promise)).agent
    readonly quick = agentWith(({ messages }) => {
      if (messages.length > 2) gate.resolve('Slow.')
      return costly('Quick.')
    }).agent
    async forward(session: Session) {
      const slow = this.slow(session)
      const quick = await this.quick((await this.quick(session)).user('More.'))
      const out = await (await slow).merge(quick)
      await effect('publish', {}, () => {
        if (isBroken) throw new Error('not now')
        return null
      })
      return out
    }
  }
  let isBroken = true
  const { store, runtime } = await fresh()
  const broken = runtime.run(new Pair(), say(), { budget: { tokens: 150 } })
  expect(kinds((await failureOf(broken)).session as Session)).not.toContain('error')
  isBroken = false
  const out = await elsewhere(store).resume(broken.runId, new Pair())
  expect(kinds(out)).not.toContain('error')
})
