import { describe, expect, it, vi } from 'vitest'
import { Agent } from '../../../src/flow/agent.ts'
import { Compressor } from '../../../src/flow/compressor.ts'
import type { Session } from '../../../src/session/session.ts'
import { scripted } from '../../../src/testing/scripted.ts'
import { tool } from '../../../src/tool/tool.ts'
import { agentWith, ask, callsEcho, echo, eventsOf, failureOf, kinds } from '../../run/make.ts'

// OpenRath 1.2, list R: the agent loop.

const outcomes = (session: Session) =>
  session.chunks.flatMap(chunk => (chunk.kind === 'tool-result' ? [chunk.outcome] : []))
const calls = (...names: string[]) => ({ toolCalls: names.map(name => ({ name })) })
const simple = (name: string, run: () => unknown) =>
  tool({ name, description: '', input: { type: 'object' }, run })

describe('R: the loop', () => {
  it('R1 an answer without tools ends it with one assistant chunk, at the same place', async () => {
    const input = ask().to('local', './')
    const out = await agentWith(['done']).agent(input)
    expect(kinds(out)).toEqual(['user', 'placement', 'assistant'])
    expect(out.placement).toEqual(input.placement)
  })

  it('R2 a file is written and the result says how many bytes', async () => {
    const args = { path: 'a.txt', content: 'four' }
    const { agent } = agentWith([{ toolCalls: [{ name: 'write_workspace_file', args }] }, 'done'], {
      builtins: true,
    })
    expect(outcomes(await agent(ask().to('local')))).toMatchObject([{ kind: 'value', value: { bytes: 4 } }])
  })

  it('R3 arguments that are no JSON are an error that the model reads', async () => {
    const { agent } = agentWith([{ toolCalls: [{ name: 'echo', args: '{"text": ' }] }, 'done'], {
      tools: [echo],
    })
    expect(outcomes(await agent(ask()))).toMatchObject([{ kind: 'error', error: 'invalid-arguments' }])
  })

  it('R4 an unknown tool is an error that the model reads', async () => {
    const { agent } = agentWith([calls('nothing'), 'done'], { tools: [echo] })
    expect(outcomes(await agent(ask()))).toMatchObject([{ kind: 'error', error: 'unknown-tool' }])
  })

  it('R5 what a tool throws is an error that names its type', async () => {
    const broken = simple('broken', () => {
      throw new RangeError('too far')
    })
    const { agent } = agentWith([calls('broken'), 'done'], { tools: [broken] })
    const [outcome] = outcomes(await agent(ask()))
    expect(outcome).toMatchObject({ kind: 'error', error: 'threw' })
    expect(JSON.stringify(outcome)).toMatch(/RangeError.*too far/)
  })

  it('R6 siblings of a failing call are unaffected, and results stand in the order of the calls', async () => {
    const broken = simple('broken', () => Promise.reject(new Error('no')))
    const fine = simple('fine', () => 'ok')
    const { agent } = agentWith([calls('fine', 'broken', 'fine'), 'done'], { tools: [broken, fine] })
    expect(outcomes(await agent(ask())).map(outcome => outcome.kind)).toEqual(['value', 'error', 'value'])
  })

  it('R7 and R8 the cap ends it after that many answers, marked, with every call answered; that a chunk marks it differs: extras of a lineage are written first', async () => {
    const { agent, model } = agentWith(() => callsEcho('x'), { tools: [echo], maxRounds: 3 })
    const out = await agent(ask())
    expect(model.calls).toHaveLength(3)
    expect(outcomes(out)).toHaveLength(3)
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'max-rounds' })
    expect(out.chunks.at(-2)?.kind).toBe('tool-result')
  })

  it('R9 a command has its output and exit code', async () => {
    const args = { cmd: 'echo hi; exit 7' }
    const { agent } = agentWith([{ toolCalls: [{ name: 'run_shell_command', args }] }, 'done'], {
      builtins: true,
    })
    expect(outcomes(await agent(ask().to('local')))).toMatchObject([
      { value: { stdout: 'hi\n', exitCode: 7 } },
    ])
  })

  it('R10 without a key anywhere the run fails when it is awaited, and says where it looked', async () => {
    vi.stubEnv('OPENAI_API_KEY', undefined)
    vi.stubEnv('OPENAI_BASE_URL', undefined)
    vi.stubEnv('OPENRATH_HOME', '/nowhere/at/all')
    const error = await failureOf(new Agent('', { model: 'openai/gpt-5.5' })(ask()))
    vi.unstubAllEnvs()
    expect(error.code).toBe('credentials-missing')
    expect(error.message).toContain('OPENAI_API_KEY')
  })

  it('R11 the tools of one turn see one session, those of the next another', async () => {
    const seen: Session[] = []
    const look = tool({
      name: 'look',
      description: '',
      input: { type: 'object' },
      run: (_args, { session }) => void seen.push(session),
    })
    await agentWith([calls('look', 'look'), calls('look'), 'done'], { tools: [look] }).agent(ask())
    expect(seen[0]?.head).toBe(seen[1]?.head)
    expect(seen[2]?.head).not.toBe(seen[0]?.head)
  })

  it('R12 deltas are passed on and add up to the text', async () => {
    const pending = agentWith([{ deltas: ['a', 'b', 'c'] }]).agent(ask())
    const deltas = (await eventsOf(pending)).flatMap(event =>
      event.type === 'text-delta' ? [event.text] : [],
    )
    expect(deltas).toEqual(['a', 'b', 'c'])
    expect((await pending).text).toBe('abc')
  })

  it('R13 a streamed tool call is put together', async () => {
    const { agent } = agentWith([callsEcho('hello'), 'done'], { tools: [echo] })
    const pending = agent(ask())
    const events = await eventsOf(pending)
    expect(events.some(event => event.type === 'tool-input-delta')).toBe(true)
    expect(outcomes(await pending)).toEqual([{ kind: 'value', value: 'hello' }])
  })

  it('R14 a model that does not stream can be followed too; that it is not refused differs: events are more than deltas', async () => {
    const model = {
      id: 'whole/answer',
      answer: async () => ({
        content: [{ type: 'text', text: 'all' } as const],
        finishReason: 'stop' as const,
      }),
    }
    const pending = new Agent('', { model, builtins: false })(ask())
    const types = (await eventsOf(pending)).map(event => event.type)
    expect(types).toEqual(['run-start', 'chunk', 'run-end'])
  })

  it('R15 there is no executor to set against a listener: a model goes in, any number listen; differs, one seam instead of two', async () => {
    const heard: string[] = []
    const { agent } = agentWith(['done'], { onEvent: event => void heard.push(event.type) })
    const pending = agent(ask(), { onEvent: event => void heard.push(event.type) })
    await pending
    expect(heard.filter(type => type === 'run-end')).toHaveLength(2)
  })

  it('R16 a value that a tool returns is JSON', async () => {
    const { agent, model } = agentWith([calls('answer'), 'done'], { tools: [simple('answer', () => 42)] })
    expect(outcomes(await agent(ask()))).toEqual([{ kind: 'value', value: 42 }])
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain('42')
  })

  it('R17 compressing needs no sandbox and keeps the place; that the originals stay on the record differs: evidence is never replaced', async () => {
    const long = ask().append({ kind: 'assistant', text: 'a long answer' }).to('local', './')
    const compressor = new Compressor('In short.', { model: scripted(['short']) })
    const out = await compressor(long)
    expect(out.placement).toEqual(long.placement)
    expect(out.lineage).toMatchObject({ operation: 'Compressor', parents: [long.id] })
    expect(out.chunks.find(chunk => chunk.kind === 'compress')).toMatchObject({ summary: 'short' })
    expect(out.chunks.at(1)?.text).toBe('a long answer')
    expect(out.messages()).toHaveLength(1)
  })
})
