import { describe, expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import { extractionPrompt } from '../../src/run/memory/extract.ts'
import { Session } from '../../src/session/session.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { fresh } from './journal/make.ts'
import { agentWith, ask, failureOf, kinds } from './make.ts'
import { memories, open, said } from './memory/make.ts'

const talk = () =>
  Session.fromUserMessage('The staging proxy listens on port 8443, and Bruno looks after it.').append({
    kind: 'assistant',
    text: 'Noted: port 8443, Bruno.',
  })

const notes = (...list: { text: string; category?: string; replaces?: string }[]) =>
  JSON.stringify({ notes: list.map(note => ({ category: 'fact', replaces: null, ...note })) })

const texts = async (store: Awaited<ReturnType<typeof open>>) =>
  (await store.list()).entries.map(({ text }) => text).sort()

describe('a commit without a model', () => {
  it('keeps what was said so that it is found again, and twice writes nothing twice', async () => {
    const store = await open()
    const { agent } = agentWith([], { memory: store })
    const session = talk()
    const first = await agent.commit(session)
    expect(first.written.map(({ text }) => text)).toEqual([
      'user: The staging proxy listens on port 8443, and Bruno looks after it.',
      'assistant: Noted: port 8443, Bruno.',
    ])
    expect(first.from).toEqual(session.chunks.map(({ id }) => id))
    expect(await agent.commit(session)).toMatchObject({ written: [], from: [] })
    expect(await agent.commit(session.fork('again'))).toMatchObject({ written: [] })
    expect((await agent.recall('Which port does the staging proxy use?'))[0]?.text).toContain('8443')
    await agent.commit(session, { scope: 'team/ops' })
    expect((await store.list({ scope: 'team' })).entries).toHaveLength(2)
  })

  it('happens after each call with commitOnForward, on the record of that call', async () => {
    const store = await open()
    const { agent } = agentWith(['Port 8443.', 'Bruno.'], {
      memory: store,
      commitOnForward: true,
      recall: false,
    })
    let out = await agent(ask('Which port?'))
    expect(kinds(out)).toEqual(['user', 'assistant', 'memory'])
    expect(memories(out)).toMatchObject([{ op: 'commit', store: store.name, by: 'Agent' }])
    expect(memories(out)[0]?.from).toEqual([...out.chunks].slice(0, 2).map(({ id }) => id))
    out = await agent(out.user('Who looks after it?'))
    expect(memories(out)[1]?.entries).toHaveLength(2)
    expect(await texts(store)).toEqual([
      'Agent: Bruno.',
      'Agent: Port 8443.',
      'user: Which port?',
      'user: Who looks after it?',
    ])
  })

  it('that fails after a call is on the record, and the answer stands', async () => {
    const store = await open()
    const broken = new Proxy(store, {
      get: (target, name) =>
        name === 'commit' ? () => Promise.reject(new Error('the disk is full')) : target[name as 'name'],
    })
    const { agent } = agentWith(['Done.'], { memory: broken, commitOnForward: true, recall: false })
    const out = await agent(ask())
    expect(out.text).toBe('Done.')
    expect(memories(out)).toMatchObject([{ op: 'commit', error: 'the disk is full' }])
  })
})

describe('secrets', () => {
  it('that the runtime keeps out of its store are kept out of memories, too', async () => {
    const memory = await open()
    const { runtime } = await fresh({ secrets: { DOOR_CODE: 'sk-12345678' } })
    const model = scripted(({ messages }) => notes({ text: said(messages).at(-1)?.split('\n').at(-1) ?? '' }))
    const { agent } = agentWith(['Ok.'], { memory, commitOnForward: true })
    const team = new (class Team extends Workflow {
      async forward(session: Session) {
        await agent.remember('The remembered code is sk-12345678.', { tags: ['sk-12345678'] })
        await agent.commit(Session.fromUserMessage('The extracted code is sk-12345678.'), { model })
        return agent(session)
      }
    })()
    const out = await runtime.run(team, ask('The said code is sk-12345678.'))
    const { entries } = await memory.list()
    expect(JSON.stringify([entries, model.calls, out.toJSONL()])).not.toContain('sk-12345678')
    for (const how of ['remembered', 'extracted', 'said'])
      expect(entries.map(({ text }) => text)).toContainEqual(
        expect.stringContaining(`${how} code is [redacted:DOOR_CODE]`),
      )
  })
})

describe('a commit with a model', () => {
  it('keeps the facts it writes down, each with the chunks it read, and says what it spent', async () => {
    const store = await open()
    const { agent } = agentWith([], { memory: store })
    const model = scripted([
      notes(
        { text: 'The staging proxy listens on port 8443.' },
        { text: 'Bruno looks after the staging proxy.' },
      ),
    ])
    const session = talk()
    const { written, from } = await agent.commit(session, { model, scope: 'team' })
    expect(written.map(({ text, category, scope }) => [text, category, scope])).toEqual([
      ['The staging proxy listens on port 8443.', 'fact', 'team'],
      ['Bruno looks after the staging proxy.', 'fact', 'team'],
    ])
    const ids = session.chunks.map(({ id }) => id)
    expect(from).toEqual(ids)
    expect(written[0]?.source).toMatchObject({ session: session.id, chunks: ids })
    const [system, user] = said(model.calls[0]?.messages)
    expect(system).toBe(extractionPrompt)
    expect(user).toContain('Known notes:\n(none)')
    expect(user).toContain('[user]\nThe staging proxy listens')
    expect(model.calls[0]?.output?.name).toBe('notes')
  })

  it('is on the record of the call around it, with what it spent, and reads nothing twice', async () => {
    const store = await open()
    const model = scripted([
      {
        text: notes({ text: 'The door is amber.' }),
        usage: { inputTokens: 100, outputTokens: 10, totalTokens: 110 },
      },
      notes({ text: 'The roof is teal.' }),
    ])
    const { agent } = agentWith(
      [{ text: 'Amber.', usage: { totalTokens: 5, inputTokens: 3, outputTokens: 2 } }, 'Teal.', 'Bye.'],
      {
        memory: store,
        commitOnForward: { model },
        recall: false,
      },
    )
    let out = await agent(ask('The door?'))
    expect(memories(out)).toMatchObject([
      {
        op: 'commit',
        usage: { totalTokens: 110 },
        extras: { model: 'scripted/model', texts: ['The door is amber.'] },
      },
    ])
    expect(out.usage.totalTokens).toBe(115)
    out = await agent(out.user('Is the roof like the door?'))
    const read = said(model.calls[1]?.messages).at(-1)
    expect(read).toContain('Is the roof like the door?')
    expect(read).not.toContain('[user]\nThe door?')
    // What is known stands beside it.
    expect(read).toMatch(/Known notes:\n\S+: The door is amber\./)
    expect(await texts(store)).toEqual(['The door is amber.', 'The roof is teal.'])
  })

  it('a plain commit before it hides nothing from the model', async () => {
    const model = scripted([notes()])
    const { agent } = agentWith(['Amber.'], { memory: await open(), commitOnForward: true, recall: false })
    const out = await agent(ask('The door?'))
    await agent.commit(out, { model })
    expect(said(model.calls[0]?.messages).at(-1)).toContain('The door?')
  })

  it('writes nothing that is known in the same words, whatever the model says and wherever it stands', async () => {
    const store = await open()
    const { agent } = agentWith([], { memory: store })
    const fact = notes({ text: 'The staging proxy listens on port 8443.' })
    const model = scripted([fact, fact, notes({ text: 'the staging proxy listens on port 8443' })])
    await agent.commit(talk(), { model, scope: 'team' })
    expect((await agent.commit(talk(), { model, scope: 'team' })).written).toEqual([])
    expect((await agent.commit(talk(), { model })).written).toEqual([])
    expect(await texts(store)).toEqual(['The staging proxy listens on port 8443.'])
  })

  it('a correction supersedes the known note, and the old text stays in its history', async () => {
    const store = await open()
    const [old] = await store.write([{ text: 'The staging proxy listens on port 80.' }])
    const { agent } = agentWith([], { memory: store })
    // However long the conversation is, the note is known.
    const long = Session.fromUserMessage(
      `${'We spoke about the garden and the weather at length. '.repeat(40)}`,
    )
      .append({ kind: 'assistant', text: 'We did.' })
      .user('The staging proxy listens on port 8443 now.')
    const model = scripted(({ messages }) => {
      const [, id] =
        /^(\S+): The staging proxy listens on port 80\.$/m.exec(said(messages).at(-1) ?? '') ?? []
      return notes({ text: 'The staging proxy listens on port 8443.', ...(id && { replaces: id }) })
    })
    const { written } = await agent.commit(long, { model })
    expect(written).toMatchObject([
      { id: old?.id, text: 'The staging proxy listens on port 8443.', version: 2 },
    ])
    expect(written[0]?.source.session).toBe(long.id)
    expect((await store.history(old?.id as string)).map(({ text }) => text)).toEqual([
      'The staging proxy listens on port 80.',
      'The staging proxy listens on port 8443.',
    ])
    await agent.commit(long, { model })
    expect(await texts(store)).toEqual(['The staging proxy listens on port 8443.'])
  })

  it('takes another prompt, JSON between fences, and a note without a category', async () => {
    const { agent } = agentWith([], { memory: await open() })
    const model = scripted([
      'Here:\n```json\n{"notes": [{"text": "Bruno has the key."}, {"text": " "}, 7]}\n```',
    ])
    const { written } = await agent.commit(talk(), { model, prompt: 'List who has what.' })
    expect(said(model.calls[0]?.messages)[0]).toBe('List who has what.')
    expect(written).toMatchObject([{ text: 'Bruno has the key.', category: 'fact' }])
  })

  it('an answer that is no JSON is an error with the text, and nothing is written', async () => {
    const store = await open()
    const { agent } = agentWith(['Ok.'], {
      memory: store,
      commitOnForward: { model: scripted(['There is nothing to note {here']) },
      recall: false,
    })
    const failed = await failureOf(agent.commit(talk(), { model: scripted(['Nothing to note.']) }))
    expect(failed).toMatchObject({ code: 'output-invalid', data: { text: 'Nothing to note.' } })
    expect(failed.message).toContain('said: Nothing to note.')
    const out = await agent(ask())
    expect(memories(out)[0]?.error).toContain('There is nothing to note {here')
    expect(await texts(store)).toEqual([])
  })

  it('asks nobody once the budget is used up, and the answer stands', async () => {
    const model = scripted([notes({ text: 'The door is amber.' })])
    const { agent } = agentWith(['Amber.'], {
      memory: await open(),
      commitOnForward: { model },
      recall: false,
      budget: { rounds: 1 },
    })
    const out = await agent(ask('The door?'))
    expect(out.text).toBe('Amber.')
    expect(model.calls).toEqual([])
    expect(memories(out)[0]?.error).toContain('The budget is used up: 1 of 1 rounds are used.')
  })

  it('reads a long conversation, and a long message, in parts', async () => {
    const { agent } = agentWith([], { memory: await open() })
    const model = scripted((_, n) => notes({ text: `Part ${n} was about number ${n}.` }))
    let session = Session.fromUserMessage('Begin.')
    for (let i = 0; i < 13; i++) session = session.user(`Turn ${i}. ${'x'.repeat(10_000)}`)
    session = session.user('y'.repeat(150_000))
    const { written } = await agent.commit(session, { model })
    const lengths = model.calls.map(({ messages }) => (said(messages).at(-1) ?? '').length)
    expect(lengths).toHaveLength(6)
    expect(Math.max(...lengths)).toBeLessThan(70_000)
    expect(lengths.reduce((sum, length) => sum + length)).toBeGreaterThan(280_000)
    expect(new Set(written.flatMap(({ source }) => source.chunks)).size).toBe(session.length)
  })

  it('inside a workflow, is on the record of the call around it', async () => {
    const model = scripted([notes({ text: 'The door is amber.' })])
    const { agent } = agentWith(['Amber.'], { memory: await open(), recall: false })
    const team = new (class Team extends Workflow {
      async forward(session: Session) {
        const out = await agent(session)
        await agent.commit(out, { model })
        return out
      }
    })()
    const out = await team(ask('The door?'))
    expect(memories(out)).toMatchObject([{ op: 'commit', by: 'Team', entries: [expect.any(String)] }])
  })
})
