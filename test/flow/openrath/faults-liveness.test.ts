import { describe, expect, it } from 'vitest'
import { createRuntime } from '../../../src/run/runtime.ts'
import type { Session } from '../../../src/session/session.ts'
import { tool } from '../../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo, failureOf, kinds } from '../../run/make.ts'
import { isRunning } from '../../sandbox/make.ts'
import { barrier, counted, sandboxOf } from './make.ts'

// OpenRath 1.2, section 9 A: faults of liveness, each as a test that we do not have it.

const outcomes = (session: Session) =>
  session.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome] : []))
const many = (count: number, name: string, args: object = {}) => ({
  toolCalls: Array.from({ length: count }, () => ({ name, args: args as Record<string, string> })),
})

describe('A: liveness', () => {
  it('A1 any number of built-in calls in one round, and of sessions, end', async () => {
    const { agent } = agentWith(
      ({ messages }) => (messages.length < 3 ? many(64, 'workspace_path_exists', { path: 'a' }) : 'done'),
      { builtins: true },
    )
    const outs = await Promise.all(Array.from({ length: 16 }, () => agent(ask().to('local'))))
    for (const out of outs) expect(outcomes(out)).toHaveLength(64)
  })

  it('A2 an agent inside a tool is waited for, may take the session of the tool, and may be there many times', async () => {
    const helper = agentWith(() => 'helped', { name: 'helper' }).agent
    const meet = barrier(40)
    const delegate = tool({
      name: 'delegate',
      description: '',
      input: { type: 'object' },
      effect: 'read',
      run: async (_args, { session }) => {
        const helped = await helper(session)
        return { text: helped.text, length: helped.length - session.length }
      },
    })
    const together = tool({
      name: 'together',
      description: '',
      input: { type: 'object' },
      effect: 'read',
      run: meet,
    })
    const { agent } = agentWith([many(40, 'delegate'), 'done'], { tools: [delegate] })
    const values = outcomes(await agent(ask()))
    expect(values).toHaveLength(40)
    // The helper answers the calls that are open in the session first, each once, and then says its text.
    for (const outcome of values) expect(outcome).toMatchObject({ kind: 'value', value: { text: 'helped' } })
    const outs = await Promise.all(
      Array.from({ length: 40 }, () =>
        agentWith([many(1, 'together'), 'done'], { tools: [together] }).agent(ask()),
      ),
    )
    expect(outs).toHaveLength(40)
  })

  it('A3 a listener that waits for the very session it is told about freezes nothing', async () => {
    const seen: number[] = []
    const { agent } = agentWith([callsEcho('x'), 'done'], { tools: [echo], budget: { tokens: 1_000_000 } })
    const pending = agent(ask(), { onEvent: async () => void seen.push((await pending).length) })
    expect((await pending).text).toBe('done')
    await new Promise(resolve => setImmediate(resolve))
    expect(new Set(seen)).toEqual(new Set([4]))
  })

  it('A4 a listener that throws on every one of many deltas holds nothing up', async () => {
    const warn = () => {}
    process.on('warning', warn)
    const deltas = Array.from({ length: 500 }, () => 'x')
    const out = await agentWith([{ deltas }]).agent(ask(), {
      onEvent: () => {
        throw new Error('listener trouble')
      },
    })
    await new Promise(resolve => setImmediate(resolve))
    process.off('warning', warn)
    expect(out.text).toHaveLength(500)
  })

  it('A5 a command behind a write in the same round sees the file, however large and however its path is written', async () => {
    const content = 'x'.repeat(2_000_000)
    const { agent } = agentWith(
      [
        {
          toolCalls: [
            { name: 'write_workspace_file', args: { path: './a.txt', content } },
            { name: 'run_shell_command', args: { cmd: 'wc -c < a.txt' } },
          ],
        },
        'done',
      ],
      { builtins: true },
    )
    const [, result] = outcomes(await agent(ask().to('local')))
    expect(JSON.stringify(result)).toContain('2000000')
  })

  it('A6 the first tools of a session open its sandbox once', async () => {
    const { opened, backend } = counted()
    await using runtime = createRuntime({ store: 'memory:', sandboxes: [backend] })
    const session = ask().to('local')
    const all = await Promise.all(Array.from({ length: 8 }, () => runtime.places.open({ session })))
    expect([new Set(all).size, opened.length]).toEqual([1, 1])
  })

  it('A7 a hundred models answer at once', async () => {
    const meet = barrier(100)
    const { agent } = agentWith(async () => {
      await meet()
      return 'done'
    })
    const outs = await Promise.all(Array.from({ length: 100 }, () => agent(ask())))
    expect(outs.every(out => out.text === 'done')).toBe(true)
  })

  it('A8 a tool has a timeout, a run can be cancelled, and what a command started ends with it', async () => {
    const hang = tool({
      name: 'hang',
      description: '',
      input: { type: 'object' },
      timeout: 10,
      run: () => new Promise(() => {}),
    })
    const out = await agentWith([many(1, 'hang'), 'done'], { tools: [hang] }).agent(ask())
    expect(outcomes(out)).toMatchObject([{ error: 'timed-out' }])

    const args = { cmd: 'sleep 300 & echo $! > pid; wait' }
    const { agent } = agentWith([{ toolCalls: [{ name: 'run_shell_command', args }] }, 'done'], {
      builtins: true,
    })
    const { opened, backend } = counted()
    await using runtime = createRuntime({ store: 'memory:', sandboxes: [backend] })
    const { sandbox } = await runtime.places.open({ session: ask().to('local') })
    const handle = sandbox.exec(args.cmd)
    let pid = 0
    while (pid === 0) {
      await new Promise(resolve => setTimeout(resolve, 10))
      const stat = await sandbox.files.stat('pid')
      if (stat?.size) pid = Number(new TextDecoder().decode(await sandbox.files.read('pid')))
    }
    handle.kill()
    await handle.result
    expect(isRunning(pid)).toBe(false)
    expect(opened).toHaveLength(1)

    const pending = agent(ask().to('local'))
    setTimeout(() => pending.cancel('enough'), 50)
    expect((await failureOf(pending)).session.pending).toEqual([])
  })

  it('A9 everything is used from async code, and from inside itself', async () => {
    const inner = agentWith(() => 'inner').agent
    const outer = agentWith([many(1, 'ask'), 'outer'], {
      tools: [inner.asTool({ name: 'ask', description: '' })],
    }).agent
    const out = await outer(ask())
    expect(kinds(out)).toContain('tool-result')
  })

  it('A10 asking for a place while it closes gives a refusal and never a closed sandbox', async () => {
    const { places } = counted()
    const session = ask().to('local')
    await sandboxOf(places, session)
    const closing = places.close()
    await expect(sandboxOf(places, session)).rejects.toMatchObject({ code: 'sandbox-closed' })
    await closing
  })
})
