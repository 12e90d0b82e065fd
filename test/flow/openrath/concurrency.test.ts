import { describe, expect, it } from 'vitest'
import type { Session } from '../../../src/session/session.ts'
import type { Effect } from '../../../src/tool/spec.ts'
import { tool } from '../../../src/tool/tool.ts'
import { agentWith, ask, store } from '../../run/make.ts'
import { barrier, counted, sandboxOf } from './make.ts'

// OpenRath 1.2, list C. There it is measured in seconds; here a barrier that opens only when all have come proves that they overlap.
// C12 is about the OpenSandbox driver, which is not built yet.

const calls = (count: number, name = 'work') => ({
  toolCalls: Array.from({ length: count }, (_, i) => ({ name, args: { i } })),
})
const outcomes = (session: Session) =>
  session.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome.kind] : []))

/** A tool that notes how many of its calls were under way at once. */
function crowded(options: { effect?: Effect; resource?: string }) {
  let now = 0
  const seen = { most: 0 }
  const work = tool({
    name: 'work',
    description: '',
    input: { type: 'object' },
    ...options,
    run: async () => {
      seen.most = Math.max(seen.most, ++now)
      for (let i = 0; i < 3; i++) await new Promise(resolve => setImmediate(resolve))
      now--
    },
  })
  return { work, seen }
}

describe('C: concurrency', () => {
  it('C1 calls on different resources overlap', async () => {
    const meet = barrier(4)
    const work = tool({
      name: 'work',
      description: '',
      input: { type: 'object' },
      resource: ({ i }: { i?: number }) => `lane ${i}`,
      run: meet,
    })
    const out = await agentWith([calls(4), 'done'], { tools: [work] }).agent(ask())
    expect(outcomes(out)).toEqual(['value', 'value', 'value', 'value'])
  })

  it('C2 calls on one resource run one at a time', async () => {
    const { work, seen } = crowded({ effect: 'read', resource: 'printer' })
    await agentWith([calls(6), 'done'], { tools: [work] }).agent(ask())
    expect(seen.most).toBe(1)
  })

  it('C3 calls that may change anything run one at a time', async () => {
    const { work, seen } = crowded({ effect: 'external' })
    await agentWith([calls(6), 'done'], { tools: [work] }).agent(ask())
    expect(seen.most).toBe(1)
  })

  it('C4 eight sessions with four tools each are all under way at once', async () => {
    const meet = barrier(32)
    const work = tool({ name: 'work', description: '', input: { type: 'object' }, effect: 'read', run: meet })
    const { agent } = agentWith(({ messages }) => (messages.length < 3 ? calls(4) : 'done'), {
      tools: [work],
    })
    const outs = await Promise.all(Array.from({ length: 8 }, () => agent(ask())))
    for (const out of outs) expect(outcomes(out)).toHaveLength(4)
  })

  it('C5 running inside a running loop is the ordinary case; differs: there is one loop, and nothing blocks it', async () => {
    const inner = agentWith(['inner']).agent
    const work = tool({
      name: 'work',
      description: '',
      input: { type: 'object' },
      run: async () => (await inner(ask())).text,
    })
    const out = await agentWith([calls(1), 'done'], { tools: [work] }).agent(ask())
    expect(out.chunks.at(2)?.text).toBe('inner')
  })

  it('C6 ids are unique, and every session is in the store', async () => {
    const { agent } = agentWith(() => 'done')
    const outs = await Promise.all(Array.from({ length: 100 }, () => agent(ask())))
    expect(new Set(outs.map(out => out.id)).size).toBe(100)
    for (const out of outs) expect((await store.sessions.get(out.id)).head).toBe(out.head)
  })

  it('C7 commands in one sandbox run side by side', async () => {
    const { places } = counted()
    const { sandbox } = await places.open({ session: ask().to('local') })
    // Each waits until all eight have made their file.
    const command = (i: number) => `touch f${i}; while [ "$(ls f* | wc -l)" -lt 8 ]; do sleep 0.02; done`
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, i) => sandbox.exec(command(i), { timeout: 300_000 }).result),
    )
    expect(results.map(result => result.exitCode)).toEqual(Array(8).fill(0))
    await places.close()
  })

  it('C8 opening and closing 32 times leaves nothing open', async () => {
    const opens = Array.from({ length: 32 }, async () => {
      const { opened, closed, places } = counted()
      await places.open({ session: ask().to('local') })
      await places.close()
      return opened.length - closed.length
    })
    expect(await Promise.all(opens)).toEqual(Array(32).fill(0))
  })

  it('C9 sixteen concurrent writes are intact', async () => {
    const { places } = counted()
    const { files } = (await places.open({ session: ask().to('local') })).sandbox
    const text = (i: number) => `${i}`.repeat(10_000)
    await Promise.all(Array.from({ length: 16 }, (_, i) => files.write(`f${i}`, text(i))))
    for (let i = 0; i < 16; i++) expect(new TextDecoder().decode(await files.read(`f${i}`))).toBe(text(i))
    await places.close()
  })

  it('C10 and C11 a thousand askers at once share one sandbox; that nobody counts references differs, as S8', async () => {
    const { opened, places } = counted()
    const session = ask().to('local')
    const sandboxes = await Promise.all(Array.from({ length: 1000 }, () => places.open({ session })))
    expect(new Set(sandboxes).size).toBe(1)
    expect(opened).toHaveLength(1)
    await places.close()
  })

  it('C13 closing several times at once closes each sandbox once', async () => {
    const { closed, places } = counted()
    await sandboxOf(places, ask().to('local'))
    await Promise.all([places.close(), places.close(), places.close()])
    await places.close()
    expect(new Set(closed).size).toBe(1)
  })
})
