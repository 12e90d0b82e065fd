import { describe, expect, it } from 'vitest'
import { map, Parallel, Sequential } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { RunEvent } from '../../src/run/event.ts'
import type { Session } from '../../src/session/session.ts'
import { agentWith, ask, eventsOf, failureOf, kinds } from '../run/make.ts'

const says = (text: string, delayMs = 0, name?: string) =>
  agentWith(() => ({ text, delayMs, usage: { inputTokens: 10, outputTokens: 0 } }), name ? { name } : {})
    .agent
const fails = (message = 'broken', delayMs = 0) =>
  agentWith(() => ({ delayMs, error: { status: 400, message } })).agent
const texts = (session: Session) =>
  session.chunks.flatMap(chunk => (chunk.kind === 'assistant' ? [chunk.text] : []))

/** Counts how many calls are under way at once. */
class Crowd extends Workflow {
  now = 0
  most = 0
  async forward(session: Session) {
    this.most = Math.max(this.most, ++this.now)
    await new Promise(resolve => setTimeout(resolve, 2))
    this.now--
    return session
  }
}

describe('Sequential', () => {
  it('gives each layer what the one before it made', async () => {
    const steps = new Sequential(says('one'), session => session.user('and now?'), says('two'))
    const out = await steps(ask())
    expect(out.chunks.map(chunk => chunk.text)).toEqual(['go', 'one', 'and now?', 'two'])
    expect(out.chunks.at(-1)?.by).toBe('Sequential/2')
    expect(String(steps)).toContain(
      '  (0): Agent(scripted/model)\n  (1): Step()\n  (2): Agent(scripted/model)',
    )
  })

  it('stops at the first layer that fails, with the session so far', async () => {
    const error = await failureOf(new Sequential(says('one'), fails(), says('never'))(ask()))
    expect(texts(error.session)).toEqual(['one'])
  })

  it('refuses no layers, and what is no layer', () => {
    expect(() => new Sequential()).toThrow('at least one layer')
    expect(() => new Sequential('x' as never)).toThrow('layer 0 of Sequential is "x"')
    expect(() => new Sequential(Crowd as never)).toThrow('the class Crowd')
  })
})

describe('Parallel', () => {
  it('forks per branch and merges in the order of the branches, whatever finishes first', async () => {
    const input = ask()
    const out = await new Parallel({ slow: says('slow', 30), fast: says('fast') })(input)
    expect(texts(out)).toEqual(['slow', 'fast'])
    const answers = out.chunks.filter(chunk => chunk.kind === 'assistant')
    expect(answers.map(chunk => chunk.branch)).toEqual(['slow', 'fast'])
    expect(answers.map(chunk => chunk.by)).toEqual(['Parallel/slow', 'Parallel/fast'])
    expect(out.branch).toBe('')
    expect(out.usage.totalTokens).toBe(20)
    expect(input.length).toBe(1)
  })

  it('numbers the branches of a list', async () => {
    const out = await new Parallel([says('a'), says('b')])(ask())
    expect(out.chunks.flatMap(chunk => (chunk.kind === 'assistant' ? [chunk.branch] : []))).toEqual([
      '#0',
      '#1',
    ])
  })

  it('of one branch comes back to where it was forked', async () => {
    const out = await new Parallel({ only: says('one') })(ask())
    expect([texts(out), out.branch]).toEqual([['one'], ''])
  })

  it('comes back to where it was forked, whatever sessions the branches return', async () => {
    const root = ask()
    const dev = root.fork('dev')
    let made = dev
    const writes = (session: Session) => {
      made = session.user('made')
      return made
    }
    const same = await new Parallel([writes, () => made])(dev)
    const foreign = await new Parallel([writes, () => root])(dev)
    const picked = await new Parallel([writes, () => made, () => root], {
      join: ([, second]) => second as Session,
    })(dev)
    for (const out of [same, foreign, picked]) {
      expect([out.branch, out.lineage.lane]).toEqual(['dev', dev.lineage.lane])
      expect(out.chunks.filter(chunk => chunk.text === 'made')).toHaveLength(1)
    }
  })

  it('keeps to its limit', async () => {
    const crowd = new Crowd()
    await new Parallel(
      Array.from({ length: 20 }, () => crowd),
      { limit: 3 },
    )(ask())
    expect(crowd.most).toBe(3)
    const all = new Crowd()
    await new Parallel(Array.from({ length: 20 }, () => all))(ask())
    expect(all.most).toBe(20)
  })

  it('gives the same state every time, however long the branches take', async () => {
    const input = ask('same')
    const run = async (a: number, b: number) =>
      (await new Parallel({ a: says('a', a), b: says('b', b) })(input)).state
    expect(await run(10, 0)).toBe(await run(0, 10))
  })

  it('may be judged by a workflow, which sees the merge', async () => {
    const { agent: judge, model } = agentWith(['the second'], { name: 'judge' })
    const out = await new Parallel([says('a'), says('b')], { join: judge })(ask())
    expect(texts(out)).toEqual(['a', 'b', 'the second'])
    expect(out.chunks.at(-1)?.by).toBe('Parallel/judge')
    expect(model.calls[0]?.messages.filter(message => message.role === 'assistant')).toHaveLength(2)
  })

  it('may be joined by a function that picks one: the others are left out and paid for', async () => {
    const parallel = new Parallel(
      { short: says('ab'), long: says('abcdef') },
      {
        join: (sessions, { labels, session }) => {
          expect([labels, session.length]).toEqual([['short', 'long'], 1])
          return sessions.toSorted((a, b) => b.text.length - a.text.length)[0] as Session
        },
      },
    )
    const out = await parallel(ask())
    expect(texts(out)).toEqual(['abcdef'])
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'verdict', verdict: 'accept', reason: 'long was picked' })
    expect(out.usage.totalTokens).toBe(20)
    expect(out.branch).toBe('')
  })

  it('may be joined by a function that makes another session', async () => {
    const join = async ([a, b]: readonly Session[], { session }: { session: Session }) =>
      session.user(`${a?.text} and ${b?.text}`)
    const out = await new Parallel([says('a'), says('b')], { join })(ask())
    expect(kinds(out)).toEqual(['user', 'user', 'merge'])
    expect(out.chunks.at(1)?.text).toBe('a and b')
    expect(out.usage.totalTokens).toBe(20)
    const all = new Parallel([says('a'), says('b')], {
      join: ([first, ...rest]) => (first as Session).merge(rest),
    })
    expect(kinds(await all(ask()))).toEqual(['user', 'assistant', 'assistant', 'merge'])
    const nothing = new Parallel([says('a')], { join: () => 'a' as never })
    expect((await failureOf(nothing(ask()))).message).toContain('A join must return a Session, not "a"')
  })

  it('takes the first that succeeds and cancels the rest', async () => {
    const slow = says('slow', 60_000)
    const parallel = new Parallel({ slow, broken: fails(), fast: says('fast', 5) }, { join: 'first' })
    const pending = parallel(ask())
    const events = await eventsOf(pending)
    const out = await pending
    expect(texts(out)).toEqual(['fast'])
    expect(out.chunks.find(chunk => chunk.kind === 'verdict')).toMatchObject({ reason: 'fast was first' })
    expect(out.chunks.find(chunk => chunk.kind === 'error')?.text).toContain('The branch broken failed')
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'run-end', by: 'Parallel/slow', status: 'cancelled' }),
    )
  })

  it('takes the first even when one before it comes to its end all the same', async () => {
    const answered = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const stubborn = new Sequential(says('stubborn'), async session => {
      answered.resolve()
      await ended.promise
      return session
    })
    const quick = async (session: Session) => {
      await answered.promise
      return session.append({ kind: 'assistant', text: 'quick' })
    }
    const onEvent = (event: RunEvent) => {
      if (event.type === 'run-end' && event.by === 'Parallel/quick') ended.resolve()
    }
    const out = await new Parallel({ stubborn, quick }, { join: 'first' })(ask(), { onEvent })
    expect(texts(out)).toEqual(['quick'])
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'verdict', reason: 'quick was first' })
    expect(out.usage.totalTokens).toBe(10)
  })

  it('that waits for the first fails when all do, with every reason', async () => {
    const error = await failureOf(
      new Parallel({ a: fails('one'), b: fails('two') }, { join: 'first' })(ask()),
    )
    expect(error.message).toMatch(/Every branch failed:\n {2}a: .*one/s)
    expect(error.message).toContain('two')
  })

  it('fails with the first failure and cancels the others', async () => {
    const pending = new Parallel({ slow: says('slow', 60_000), broken: fails('the reason') })(ask())
    const events = await eventsOf(pending)
    const error = await failureOf(pending)
    expect(error.message).toContain('the reason')
    expect(error.session.branch).toBe('broken')
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'run-end', by: 'Parallel/slow', status: 'cancelled' }),
    )
  })

  it('does not begin branches behind one that failed', async () => {
    const never = agentWith(['never'])
    await failureOf(new Parallel([fails(), never.agent], { limit: 1 })(ask()))
    expect(never.model.calls).toHaveLength(0)
  })

  it('drops a failing branch, which is on the record with its reason', async () => {
    const out = await new Parallel({ a: says('a'), b: fails('no key'), c: says('c') }, { onFailure: 'drop' })(
      ask(),
    )
    expect(texts(out)).toEqual(['a', 'c'])
    const chunk = out.chunks.at(-1)
    expect(chunk).toMatchObject({ kind: 'error', error: 'model-rejected', by: 'Parallel' })
    expect(chunk?.text).toContain('The branch b failed and was left out')
    expect(out.chunks.filter(one => one.kind === 'merge').at(-1)).toMatchObject({ policy: 'ours' })
  })

  it('drops a branch that cancelled itself with its reason, too', async () => {
    const late = says('late', 60_000)
    const gaveUp = (session: Session) => {
      const pending = late(session)
      pending.cancel('took too long')
      return pending
    }
    const out = await new Parallel({ a: says('a'), gaveUp }, { onFailure: 'drop' })(ask())
    expect(out.chunks.at(-1)?.text).toContain(
      'gaveUp failed and was left out: The work was cancelled: took too',
    )
  })

  it('cannot drop every branch', async () => {
    const parallel = new Parallel([fails('one'), fails('two')], { onFailure: 'drop' })
    expect((await failureOf(parallel(ask()))).message).toContain('Every branch failed')
  })

  it('tries a failing branch again from its beginning, as often as asked', async () => {
    const { agent, model } = agentWith([
      { error: { status: 400, message: 'first' } },
      { error: { status: 400, message: 'second' } },
      'third time',
    ])
    const out = await new Parallel({ a: agent, b: says('b') }, { onFailure: { retry: 2 } })(ask())
    expect(texts(out)).toEqual(['third time', 'b'])
    expect(model.calls.map(call => call.messages.length)).toEqual([2, 2, 2])
    const errors = out.chunks.filter(chunk => chunk.kind === 'error' && chunk.by === 'Parallel')
    expect(errors).toMatchObject([{ attempt: 1 }, { attempt: 2 }])
  })

  it('fails, or drops, a branch that failed every time', async () => {
    const fail = new Parallel([fails('always'), says('b')], { onFailure: { retry: 1 } })
    expect((await failureOf(fail(ask()))).message).toContain('always')
    const drop = new Parallel([fails('always'), says('b')], { onFailure: { retry: 1, otherwise: 'drop' } })
    expect(texts(await drop(ask()))).toEqual(['b'])
  })

  it('is cancelled whole, whatever it does with failures', async () => {
    const pending = new Parallel([says('a', 60_000), says('b')], { onFailure: 'drop' })(ask())
    setTimeout(() => pending.cancel('enough'), 5)
    expect(await failureOf(pending)).toMatchObject({ code: 'cancelled' })
  })

  it('refuses options that mean nothing', () => {
    expect(() => new Parallel([])).toThrow('at least one branch')
    expect(() => new Parallel('x' as never)).toThrow('a list or a record of layers')
    expect(() => new Parallel([says('a')], { limit: 0 })).toThrow('limit is a whole number from 1, not 0')
    expect(() => new Parallel([says('a')], { join: 'best' as never })).toThrow('not "best"')
    expect(() => new Parallel([says('a')], { onFailure: 'ignore' as never })).toThrow('not "ignore"')
    expect(() => new Parallel({ a: 5 as never })).toThrow('branch a of Parallel is 5')
  })

  it('prints its branches by label, and its judge', () => {
    const judge = says('', 0, 'judge')
    expect(String(new Parallel({ a: new Crowd(), b: new Crowd() }, { join: judge, limit: 2 }))).toBe(
      'Parallel(join: a judge, limit: 2\n  (a): Crowd()\n  (b): Crowd()\n  (join): Agent(scripted/model)\n)',
    )
  })

  it('runs a thousand branches', async () => {
    const crowd = new Crowd()
    const out = await new Parallel(Array.from({ length: 1000 }, () => crowd))(ask())
    expect(kinds(out)).toEqual(['user', 'merge'])
  })
})

describe('map', () => {
  it('gives each item a fork with a message, and joins in the order of the items', async () => {
    const { agent } = agentWith(({ messages }) => {
      const last = messages.at(-1)
      const part = last?.role === 'user' ? last.content[0] : undefined
      return { text: `saw ${part?.type === 'text' ? part.text : ''}`, delayMs: part && 'a' in part ? 5 : 0 }
    })
    const input = ask()
    const out = await map(input, ['a', { b: 2 }], agent, { limit: 2 })
    expect(texts(out)).toEqual(['saw a', 'saw {"b":2}'])
    expect(out.lineage).toMatchObject({ operation: 'map', parents: [input.id] })
  })

  it('takes any iterable, a message of its own, a limit and a join', async () => {
    const crowd = new Crowd()
    const out = await map(ask(), new Set([1, 2, 3]), crowd, {
      limit: 1,
      message: (item, index) => `item ${index}: ${item}`,
      join: (sessions, { session }) => session.user(sessions.map(one => one.chunks.at(-1)?.text).join()),
    })
    expect(crowd.most).toBe(1)
    expect(out.chunks.at(1)?.text).toBe('item 0: 1,item 1: 2,item 2: 3')
  })

  it('refuses an item that says nothing, by its number', async () => {
    for (const item of [undefined, '', 10n, new Map([['a', 1]])]) {
      const error = await failureOf(map(ask(), ['fine', item], session => session))
      expect(error).toMatchObject({ code: 'invalid-argument' })
      expect(error.message).toContain('map: item 1 is ')
    }
  })

  it('over nothing gives the session as it was', async () => {
    const input = ask()
    expect((await map(input, [], new Crowd())).head).toBe(input.head)
  })

  it('over items that come later is refused with the way round', () => {
    async function* later() {
      yield 'a'
    }
    expect(() => map(ask(), later() as never, new Crowd())).toThrow('collect an async one first')
  })

  it('inside a workflow belongs to its run, and its layer keeps its name', async () => {
    class Survey extends Workflow {
      reader = says('read')
      forward(session: Session) {
        return map(session, ['a', 'b'], this.reader)
      }
    }
    const out = await new Survey()(ask())
    expect(out.chunks.flatMap(chunk => (chunk.kind === 'assistant' ? [chunk.by] : []))).toEqual([
      'Survey/map/reader',
      'Survey/map/reader',
    ])
  })
})
