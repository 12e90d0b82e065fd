import { expect, test } from 'vitest'
import { Session } from '../../src/session/session.ts'
import type { ApprovalDecision, ApprovalRequest } from '../../src/tool/approval.ts'
import { policy } from '../../src/tool/policy/policy.ts'
import type { Tool } from '../../src/tool/spec.ts'
import { tool } from '../../src/tool/tool.ts'
import { call, dispatch, gate, numbered, settle, simple } from './make.ts'

const pay: Tool = tool<{ amount: number }>({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
  approval: ({ amount }) => amount > 10,
  run: ({ amount }) => `paid ${amount}`,
})
const one = (amount: number) => [call('pay', { amount }, 'c0')]
const decide = (decision: ApprovalDecision) => ({ approve: async () => decision })

test('a person is asked when the tool says so, and both question and answer are on the record', async () => {
  let asked: ApprovalRequest | undefined
  const { records } = await dispatch([pay], one(50), {
    by: 'Shop/agent',
    async approve(request) {
      asked = request
      return { verdict: 'approved', by: 'ada', reason: 'fine' }
    },
  })
  expect(asked).toMatchObject({
    args: { amount: 50 },
    question: 'pay asks for approval.',
    tool: { name: 'pay' },
  })
  expect(records[0]).toMatchObject({
    outcome: { kind: 'value', value: 'paid 50' },
    approvals: [
      {
        kind: 'approval',
        approval: asked?.approval,
        callId: 'c0',
        tool: 'pay',
        by: 'Shop/agent',
        args: { amount: 50 },
      },
      { kind: 'approval', approval: asked?.approval, verdict: 'approved', decidedBy: 'ada', reason: 'fine' },
    ],
  })
  const session = Session.create('empty').append(...(records[0]?.approvals ?? []))
  expect(session.pending).toEqual([])
  const { records: small } = await dispatch([pay], one(5), { approve: () => expect.unreachable() })
  expect(small[0]).toMatchObject({ outcome: { value: 'paid 5' }, approvals: [] })
})

test('a rejection is an outcome, and so is a question that nobody answered in time', async () => {
  const rejected = await dispatch(
    [pay],
    one(50),
    decide({ verdict: 'rejected', by: 'ada', reason: 'too much' }),
  )
  expect(rejected.outcomes).toEqual([{ kind: 'denied', reason: 'too much' }])
  expect(rejected.records[0]?.approvals[1]).toMatchObject({ verdict: 'rejected', decidedBy: 'ada' })
  const expired = await dispatch([pay], one(50), decide({ verdict: 'expired' }))
  expect(expired.outcomes).toEqual([{ kind: 'denied', reason: 'Nobody decided in time.' }])
})

test('without anybody to ask, what needs approval is denied', async () => {
  const { records } = await dispatch([pay], one(50))
  expect(records[0]?.outcome).toEqual({
    kind: 'denied',
    reason: 'pay asks for approval. Nobody is there to approve it.',
  })
  expect(records[0]?.approvals).toMatchObject([
    { question: 'pay asks for approval.' },
    { verdict: 'rejected', decidedBy: 'policy' },
  ])
})

test('an edited call runs with the edited arguments, checked like any others', async () => {
  const { records } = await dispatch(
    [pay],
    one(50),
    decide({ verdict: 'edited', by: 'ada', edit: { amount: 7 } }),
  )
  expect(records[0]).toMatchObject({
    args: { amount: 7 },
    call: { args: { amount: 50 } },
    outcome: { value: 'paid 7' },
  })
  expect(records[0]?.approvals[1]).toMatchObject({ verdict: 'edited', args: { amount: 7 } })
  const wrong = await dispatch([pay], one(50), decide({ verdict: 'edited', edit: { amount: 'x' } }))
  expect(wrong.outcomes[0]).toMatchObject({ error: 'invalid-arguments' })
  const rules = policy({ deny: [{ tool: 'pay', when: { amount: 13 }, reason: 'unlucky' }] })
  const denied = await dispatch([pay], one(50), {
    policy: rules,
    ...decide({ verdict: 'edited', edit: { amount: 13 } }),
  })
  expect(denied.outcomes[0]).toEqual({ kind: 'denied', reason: 'unlucky' })
  expect(denied.records[0]?.approvals).toMatchObject([
    {},
    { verdict: 'edited' },
    { verdict: 'rejected', decidedBy: 'policy' },
  ])
})

test('an edit that moves a call to another resource keeps it from overlapping there', async () => {
  const running = new Set<string>()
  const write = simple(
    'write',
    async args => {
      const { path } = args as { path: string }
      expect(running.has(path)).toBe(false)
      running.add(path)
      await settle()
      running.delete(path)
    },
    {
      resource: args => (args as { path: string }).path,
      approval: args => (args as { path: string }).path === 'a',
    },
  )
  const { outcomes } = await dispatch(
    [write],
    numbered(call('write', { path: 'a' }), call('write', { path: 'b' }), call('write', { path: 'b' })),
    {
      async approve() {
        await settle()
        return { verdict: 'edited', edit: { path: './b' } }
      },
    },
  )
  expect(outcomes.map(outcome => outcome.kind)).toEqual(['value', 'value', 'value'])
})

test('an edit that moves a call to a resource does not let it overtake those before it', async () => {
  const wrote: string[] = []
  const write = simple('write', args => void wrote.push((args as { text: string }).text), {
    effect: 'workspace',
    resource: args => (args as { path: string }).path,
    approval: true,
  })
  const first = gate<ApprovalDecision>()
  const running = dispatch(
    [write],
    numbered(call('write', { path: 'a', text: 'first' }), call('write', { path: 'b', text: 'second' })),
    {
      approve: async ({ call }) =>
        call.id === 'c0' ? first.promise : { verdict: 'edited', edit: { path: 'a', text: 'second' } },
    },
  )
  await settle()
  expect(wrote).toEqual([])
  first.open({ verdict: 'approved' })
  await running
  expect(wrote).toEqual(['first', 'second'])
})

test('a cancelled run tells the question whether a call needs approval to stop', async () => {
  const controller = new AbortController()
  const asked = gate<AbortSignal>()
  const slow = simple('slow', () => expect.unreachable(), {
    approval: (_, { signal }) => {
      asked.open(signal)
      return new Promise(() => {})
    },
  })
  const running = dispatch([slow], numbered(call('slow')), { signal: controller.signal })
  const signal = await asked.promise
  controller.abort(new Error('enough'))
  expect((await running).outcomes).toMatchObject([{ error: 'cancelled' }])
  expect(signal.aborted).toBe(true)
})

test('several questions are open at once, and calls that need none do not wait', async () => {
  const doors = [gate<ApprovalDecision>(), gate<ApprovalDecision>()]
  const asked: string[] = []
  const done: string[] = []
  const ask = simple('ask', (_args, { callId }) => void done.push(callId), { approval: true })
  const free = simple('free', (_args, { callId }) => void done.push(callId))
  const running = dispatch([ask, free], numbered(call('ask'), call('free'), call('ask')), {
    approve({ call: { id } }) {
      asked.push(id)
      return (doors[asked.length - 1] as (typeof doors)[number]).promise
    },
  })
  await settle()
  expect([asked, done]).toEqual([['c0', 'c2'], ['c1']])
  doors[1]?.open({ verdict: 'approved' })
  await settle()
  expect(done).toEqual(['c1', 'c2'])
  doors[0]?.open({ verdict: 'approved' })
  await running
})

test('waiting for a person takes no place under the limit', async () => {
  const ask = simple('ask', () => 1, { approval: true })
  const free = simple('free', () => 1)
  const door = gate<ApprovalDecision>()
  let freed = 0
  const running = dispatch([ask, free], numbered(call('ask'), call('ask'), call('free'), call('free')), {
    limit: 1,
    approve: () => door.promise,
    onStart: ({ tool: { name } }) => void (name === 'free' && freed++),
  })
  await settle()
  expect(freed).toBe(2)
  door.open({ verdict: 'approved' })
  await running
})

test('the id of an approval is the same when the same call is asked again from the same state', async () => {
  const ids: string[] = []
  const approve = async ({ approval }: ApprovalRequest): Promise<ApprovalDecision> => {
    ids.push(approval)
    return { verdict: 'rejected' }
  }
  const from = (at: number) => Session.fromUserMessage('Pay.', { at })
  const equal = numbered(call('pay', { amount: 50 }), call('pay', { amount: 50 }))
  await dispatch([pay], equal, { session: from(1), approve })
  const renamed = equal.map(part => ({ ...part, id: `other-${part.id}` }))
  await dispatch([pay], renamed, { session: from(2), approve })
  await dispatch([pay], equal, { session: from(1).user('More.'), approve })
  expect(ids.slice(0, 2)).toEqual(ids.slice(2, 4))
  expect(new Set(ids).size).toBe(4)
})

test('an approver that fails fails the dispatch, and its siblings still end', async () => {
  const done: string[] = []
  const ask = simple('ask', () => void done.push('ask'), { approval: true })
  const free = simple('free', () => void done.push('free'))
  const failing = dispatch([ask, free], numbered(call('ask'), call('free')), {
    approve: () => Promise.reject(new Error('suspended')),
  })
  await expect(failing).rejects.toThrow('suspended')
  expect(done).toEqual(['free'])
  const odd = dispatch([ask], [call('ask')], { approve: async () => ({ verdict: 'maybe' }) as never })
  await expect(odd).rejects.toThrow('"maybe"')
  const empty = dispatch([ask], [call('ask')], { approve: async () => ({ verdict: 'edited' }) })
  await expect(empty).rejects.toThrow('no edit')
})

test('a tool that cannot say whether it needs approval gets a person to look', async () => {
  const broken = simple('broken', () => 1, {
    approval() {
      throw new Error('hm')
    },
  })
  let question = ''
  await dispatch([broken], [call('broken')], {
    async approve(request) {
      question = request.question
      return { verdict: 'approved' }
    },
  })
  expect(question).toBe('broken could not say whether it needs approval (Error: hm).')
})

test('a policy denies with an outcome and a chunk, and never with an exception', async () => {
  let ran = 0
  const rules = policy({ name: 'house', deny: ['pay'], approval: ['look'] })
  const look = simple('look', () => ++ran)
  const { records } = await dispatch([pay, look], numbered(call('pay', { amount: 1 }), call('look')), {
    policy: rules,
    approve: async ({ question }) => ({ verdict: 'rejected', by: 'ada', reason: question }),
  })
  expect(records[0]).toMatchObject({
    outcome: { kind: 'denied', reason: 'pay is denied (policy house)' },
    approvals: [{ kind: 'approval', callId: 'c0', verdict: 'rejected', decidedBy: 'policy' }],
    durationMs: 0,
  })
  expect(records[1]?.outcome).toEqual({ kind: 'denied', reason: 'The policy asks about look.' })
  expect(ran).toBe(0)
})

test('calls of one turn are counted in the order asked', async () => {
  const look = simple('look', () => 1)
  const rules = policy({ calls: [{ tool: 'look', most: 2 }] })
  const { outcomes } = await dispatch(
    [look],
    numbered(call('look'), call('look'), call('look'), call('look')),
    { policy: rules },
  )
  expect(outcomes.map(outcome => outcome.kind)).toEqual(['value', 'value', 'denied', 'denied'])
})

test('calls whose rulings are on record count for those that come after them', async () => {
  const look = simple('look', () => 1)
  const rules = policy({ calls: [{ tool: 'look', most: 1 }] })
  const { outcomes } = await dispatch([look], numbered(call('look'), call('look')), {
    policy: rules,
    ruled: async ({ index }, rule) => {
      if (index > 0) return rule()
      await new Promise(resolve => setImmediate(resolve))
      return {}
    },
  })
  expect(outcomes.map(outcome => outcome.kind)).toEqual(['value', 'denied'])
})
