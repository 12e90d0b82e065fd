import { describe, expect, it } from 'vitest'
import { Compressor, type CompressorOptions } from '../../src/flow/compressor.ts'
import { restore } from '../../src/flow/restore.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import type { Chunk } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import { ask, eventsOf, failureOf, kinds, store } from '../run/make.ts'
import { calls, note, result, says, spoken, user } from '../session/make.ts'

function compressorWith(script: Script, options: CompressorOptions = {}) {
  const model = scripted(script)
  return {
    model,
    compressor: new Compressor('Keep the facts.', { model, retry: { baseMs: 0 }, ...options }),
  }
}

const talk = Session.create('empty').append(user('a'), says('b'), user('c'), says('d'), user('e'))
const turn = Session.create('empty').append(
  user('go'),
  calls('c1', 'c2'),
  result('c1'),
  result('c2'),
  says('done'),
)
const summary = (text: string) => `user: Summary of the conversation so far:\n${text}`
const compressOf = (session: Session) =>
  session.chunks.find(chunk => chunk.kind === 'compress') as Chunk<'compress'>
const sentText = (model: ReturnType<typeof scripted>, n = 0) => JSON.stringify(model.calls[n]?.messages)

describe('a compressor', () => {
  it('replaces the history by a summary, with everything about it on the record', async () => {
    const { compressor, model } = compressorWith(['  It was about a to e. '])
    const out = await compressor(talk)
    expect(spoken(out)).toEqual([summary('It was about a to e.')])
    expect(out.text).toBe('It was about a to e.')
    expect(compressOf(out)).toMatchObject({
      by: 'Compressor',
      model: 'scripted/model',
      replaced: talk.chunks.map(chunk => chunk.id),
    })
    expect(out.usage).toEqual(compressOf(out).usage)
    expect(out.lineage).toMatchObject({ operation: 'Compressor', parents: [talk.id] })
    expect((await store.sessions.get(out.id)).head).toBe(out.head)
    expect(out.verify().ok).toBe(true)
    model.done()
  })

  it('sends the instruction and the history as text: no tools, no choice among them, no calls', async () => {
    const { compressor, model } = compressorWith(['short'])
    await compressor(turn)
    expect(model.calls[0]).toMatchObject({ tools: [] })
    expect(model.calls[0]).not.toHaveProperty('toolChoice')
    expect(model.calls[0]?.messages.map(message => message.role)).toEqual(['system', 'user'])
    expect(sentText(model)).toContain('Keep the facts.')
    expect(sentText(model)).toContain('(calls look with')
    expect(sentText(model)).toContain('[result of look]\\nresult of c2')
  })

  it('leaves the originals where they are, and a rewind undoes it', async () => {
    const out = await compressorWith(['short']).compressor(talk)
    expect(out.chunks.map(chunk => chunk.id).slice(0, 5)).toEqual(talk.chunks.map(chunk => chunk.id))
    expect(out.rewind(compressOf(out).index - 1).messages()).toEqual(talk.messages())
  })

  it('summarises a summary with what came after it', async () => {
    const { compressor, model } = compressorWith(['first', 'second'], { keep: 1 })
    const once = await compressor(talk)
    expect(spoken(once)).toEqual([summary('first'), 'user: e'])
    const twice = await compressor(once.append(says('f'), user('g')))
    expect(spoken(twice)).toEqual([summary('second'), 'user: g'])
    expect(sentText(model, 1)).toContain('first')
    expect(sentText(model, 1)).not.toContain('[user]\\na')
  })

  it('does not name placements and evidence, nor the instructions of the session', async () => {
    const session = Session.fromAgentPrompt('Be brief.').append(note('n'), user('a'), says('b')).to('local')
    const out = await compressorWith(['short']).compressor(session)
    expect(compressOf(out).replaced).toHaveLength(2)
    expect(spoken(out)).toEqual(['system: Be brief.', summary('short')])
    expect(out.placement?.backend).toBe('local')
  })

  it('returns a session that is too short as it is, without asking', async () => {
    const { compressor, model } = compressorWith([])
    for (const session of [Session.create('empty'), ask('one message')]) {
      const out = await compressor(session)
      expect(out.head).toBe(session.head)
    }
    const { compressor: keeping } = compressorWith([], { keep: 4 })
    expect((await keeping(talk)).length).toBe(5)
    expect(model.calls).toHaveLength(0)
  })

  it('is a layer: events, and a pending session as input', async () => {
    class Twice extends Workflow {
      compressor = compressorWith([{ text: 'short', deltas: ['sho', 'rt'] }]).compressor
      forward(session: Session) {
        return this.compressor(compressorWith(['long enough']).compressor(session.user('more')))
      }
    }
    const events = await eventsOf(new Twice()(ask()))
    expect(events.flatMap(event => (event.type === 'chunk' ? [event.chunk.kind] : []))).toContain('compress')
  })
})

describe('keep', () => {
  const kept = async (session: Session, keep: NonNullable<CompressorOptions['keep']>) =>
    spoken(await compressorWith(['short'], { keep }).compressor(session))

  it('leaves the last chunks that a model sees', async () => {
    expect(await kept(talk.append(note('n')), 2)).toEqual([summary('short'), 'assistant: d', 'user: e'])
  })

  it('leaves what fits into a budget of tokens', async () => {
    const long = Session.create('empty').append(
      user('x'.repeat(400)),
      says('y'.repeat(40)),
      user('z'.repeat(40)),
    )
    expect(await kept(long.user('w'.repeat(40)), { tokens: 29 })).toHaveLength(3)
    expect(await kept(long.user('w'.repeat(40)), { tokens: 9 })).toHaveLength(1)
  })

  it('never splits a tool call from its results', async () => {
    for (const keep of [2, 3, 4]) {
      expect(await kept(Session.create('empty').append(user('0'), ...bodies(turn)), keep)).toEqual([
        summary('short'),
        'assistant: look#c1 look#c2',
        'tool c1: result of c1',
        'tool c2: result of c2',
        'assistant: done',
      ])
    }
    expect(await kept(turn.user('now'), { tokens: 3 })).toEqual([
      summary('short'),
      'assistant: done',
      'user: now',
    ])
  })

  it('leaves a turn alone whose results are still to come', async () => {
    const open = talk.append(calls('c1', 'c2'), result('c1'))
    const out = await compressorWith(['short']).compressor(open)
    expect(out.pending).toHaveLength(1)
    expect(spoken(out).slice(0, 3)).toEqual([
      summary('short'),
      'assistant: look#c1 look#c2',
      'tool c1: result of c1',
    ])
  })

  it('that means nothing is refused', () => {
    const model = scripted([])
    expect(() => new Compressor('x', { model, keep: -1 })).toThrow('keep is a number of chunks')
    expect(() => new Compressor('x', { model, keep: { tokens: Number.NaN } })).toThrow('keep is')
    expect(() => new Compressor('', { model })).toThrow('takes an instruction')
    expect(() => new Compressor('x', { model, maxInput: 0 })).toThrow('maxInput is a number')
  })
})

describe('a summary is refused', () => {
  const refused = async (script: Script) => failureOf(compressorWith(script).compressor(talk))

  it('when it was cut short by the limit of the model', async () => {
    const error = await refused([{ text: 'It was ab', finishReason: 'length' }])
    expect(error).toMatchObject({ code: 'output-invalid' })
    expect(error.message).toContain('cut short after 9 characters')
    expect(kinds(error.session).at(-1)).toBe('error')
    expect(error.session.usage.totalTokens).toBeGreaterThan(0)
    expect(error.session.messages()).toEqual(talk.messages())
  })

  it('when it is empty, or calls a tool', async () => {
    expect((await refused([' \n '])).message).toContain('it is empty')
    expect((await refused([{ text: 'x', toolCalls: [{ name: 'look' }] }])).message).toContain('calls a tool')
  })

  it('when the model fails, with every attempt on the record', async () => {
    const error = await refused([{ error: { status: 529 } }, { error: { status: 400, message: 'no' } }])
    expect(kinds(error.session).slice(5)).toEqual(['error', 'error'])
  })
})

describe('a history larger than one request', () => {
  it('is summarised piece by piece, and nothing is left out', async () => {
    const words = Array.from({ length: 60 }, (_, i) => `word-${i}`)
    let session = Session.create('empty')
    for (const word of words) session = session.user(`${word} ${'.'.repeat(60)}`)
    session = session.user(`big ${'-'.repeat(3000)} end`)
    const { compressor, model } = compressorWith((_, n) => `summary ${n}`, { maxInput: 400 })
    const out = await compressor(session)
    expect(model.calls.length).toBeGreaterThan(4)
    const sent = model.calls.map(call =>
      call.messages.flatMap(message => ('content' in message ? message.content : [])),
    )
    for (const parts of sent) {
      const size = parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0)
      expect(size).toBeLessThanOrEqual(1600)
    }
    for (const word of words) expect(JSON.stringify(sent)).toContain(`${word} .`)
    for (let n = 1; n < model.calls.length; n++) expect(sentText(model, n)).toContain(`summary ${n - 1}`)
    expect(spoken(out)).toEqual([summary(`summary ${model.calls.length - 1}`)])
    expect(compressOf(out).usage?.inputTokens).toBeGreaterThan(1000)
  })

  it('does not fit a limit that leaves no room', async () => {
    const error = await failureOf(compressorWith([], { maxInput: 20 }).compressor(talk))
    expect(error.message).toContain('raise maxInput')
  })
})

describe('a budget', () => {
  it('that is spent leaves the history as it is, and says so', async () => {
    const { compressor, model } = compressorWith([])
    const out = await compressor(talk, { budget: { rounds: 0 } })
    expect(model.calls).toHaveLength(0)
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
    expect(out.messages()).toEqual(talk.messages())
  })

  it('that ends between two pieces leaves it too, with what the pieces cost', async () => {
    const { compressor, model } = compressorWith(() => 'short', { maxInput: 200 })
    const long = talk.user('x'.repeat(5000))
    const out = await compressor(long, { budget: { rounds: 2 } })
    expect(model.calls).toHaveLength(2)
    expect(out.messages()).toEqual(long.messages())
    expect(out.chunks.at(-1)?.text).toContain('2 of 2 rounds')
    expect(out.usage.totalTokens).toBeGreaterThan(0)
  })

  it('of time ends a summary that takes too long', async () => {
    const { compressor } = compressorWith([{ text: 'late', delayMs: 60_000 }])
    const out = await compressor(talk, { budget: { time: 20 } })
    expect(out.chunks.at(-1)).toMatchObject({ kind: 'error', error: 'budget-spent' })
  })
})

function bodies(session: Session) {
  return session.chunks.map(({ id: _, state: __, index: ___, text: ____, ...body }) => body)
}

describe('restore', () => {
  it('undoes a compression and keeps what came after', async () => {
    const out = (await compressorWith(['short']).compressor(talk)).append(says('f'), user('g'))
    const back = restore(out)
    expect(spoken(back)).toEqual([...spoken(talk), 'assistant: f', 'user: g'])
    expect(back.lineage).toMatchObject({ operation: 'restore', parents: [out.id] })
    expect(back.chunks.at(5)).toMatchObject({ kind: 'note', data: { compress: compressOf(out).id } })
    expect(back.verify().ok).toBe(true)
    expect(out.messages()).toHaveLength(3)
  })

  it('undoes an inner one below an outer one, or the outer one alone', async () => {
    const { compressor } = compressorWith(['inner', 'outer'], { keep: 1 })
    const once = await compressor(talk)
    const twice = await compressor(once.append(says('f'), user('g'), user('h')))
    expect(spoken(restore(twice))).toEqual([
      summary('inner'),
      'user: e',
      'assistant: f',
      'user: g',
      'user: h',
    ])
    expect(spoken(restore(twice, compressOf(once).id))).toEqual([summary('outer'), 'user: h'])
    expect(spoken(restore(restore(twice)))).toEqual([...spoken(talk), 'assistant: f', 'user: g', 'user: h'])
  })

  it('keeps branches apart, and what came after counts once when both are merged', async () => {
    const usage = { inputTokens: 10, outputTokens: 0 }
    const short = await compressorWith([{ text: 'short', usage }]).compressor(talk)
    const [a, b] = short
      .forks(['a', 'b'])
      .map(fork => fork.append({ kind: 'assistant', text: fork.branch, usage }))
    const out = await (a as Session).merge(b as Session)
    const back = restore(out)
    expect(back.chunks.slice(-3).map(chunk => chunk.branch)).toEqual(['a', 'b', undefined])
    const both = await back.merge(out)
    expect(both.usage.totalTokens).toBe(30)
    expect(both.verify().ok).toBe(true)
  })

  it('undoes one that a session begins with', () => {
    const replaced = [talk.chunks.at(0)?.id as string]
    const out = Session.create('empty').append({ kind: 'compress', replaced, summary: 's' }, user('a'))
    expect(kinds(restore(out))).toEqual(['note', 'user'])
  })

  it('refuses what was never compressed', () => {
    expect(() => restore(talk)).toThrow('There is no compression to undo')
    expect(() => restore(talk, 'abc')).toThrow('"abc"')
  })
})
