import { expect, it, onTestFinished } from 'vitest'
import type { MemoryStore } from '../../src/memory/spec.ts'
import { configure } from '../../src/run/runtime.ts'
import type { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { scripted } from '../../src/testing/scripted.ts'
import { agentWith, ask, failureOf, store } from './make.ts'
import { memories, open, said } from './memory/make.ts'

const notes = (...list: { text: string; replaces?: string }[]) =>
  JSON.stringify({ notes: list.map(note => ({ category: 'fact', replaces: null, ...note })) })

it('a model reads a branch that none has read, also where a merge puts one that was read behind it', async () => {
  const memory = await open()
  const [left, right] = ask('The cable?').forks(2) as [Session, Session]
  const { agent: quiet } = agentWith(['The cable is blue.'])
  const { agent } = agentWith(['The plug is red.'], {
    memory,
    recall: false,
    commitOnForward: { model: scripted([notes({ text: 'The plug is red.' })]) },
  })
  const unread = await quiet(left)
  const merged = await unread.merge(await agent(right))
  const model = scripted([notes({ text: 'The cable is blue.' })])
  const { written } = await agent.commit(merged, { model })
  expect(written.map(({ text }) => text)).toEqual(['The cable is blue.'])
  const shown = said(model.calls[0]?.messages).at(-1)
  expect(shown).toContain('[assistant]\nThe cable is blue.')
  expect(shown).not.toContain('[assistant]\nThe plug is red.')
})

it.each([{ scope: 'user/ada' }, {}])(
  'notes of one user are neither shown nor changed, nor taken for known, when others are kept with %j',
  async where => {
    const store = await open()
    const [bobs] = await store.write([{ text: 'The user prefers tea.', scope: 'user/bob' }])
    const { agent } = agentWith([], { memory: store })
    const model = scripted([
      notes({ text: 'The user prefers tea.' }, { text: 'No tea.', replaces: bobs?.id ?? '' }),
    ])
    const { written } = await agent.commit(ask('I prefer tea.'), { model, ...where })
    expect(said(model.calls[0]?.messages).at(-1)).toContain('Known notes:\n(none)')
    const scope = where.scope ?? expect.stringMatching(/^session\//)
    expect(written.map(({ text, scope }) => [text, scope])).toEqual([
      ['The user prefers tea.', scope],
      ['No tea.', scope],
    ])
    expect(await store.read(bobs?.id ?? '')).toMatchObject({ text: 'The user prefers tea.', version: 1 })
  },
)

it('a secret that a model writes down outside every call is kept out, like one that was said', async () => {
  const memory = await open()
  configure({ store: await openStore('memory:', { secrets: { DOOR_CODE: 'sk-12345678' } }) })
  onTestFinished(() => void configure({ store }))
  const { agent } = agentWith([], { memory })
  await agent.commit(ask('Is there a code?'), {
    model: scripted([notes({ text: 'The code is sk-12345678.' })]),
  })
  expect((await memory.list()).entries.map(({ text }) => text)).toEqual(['The code is [redacted:DOOR_CODE].'])
})

it('a call that is cancelled does not wait for a memory that hangs', async () => {
  const real = await open()
  for (const what of ['find', 'commit'] as const) {
    const asked = Promise.withResolvers<AbortSignal | undefined>()
    const memory: MemoryStore = Object.create(real, {
      [what]: {
        value: (_: unknown, { signal }: { signal?: AbortSignal }) => {
          asked.resolve(signal)
          return new Promise(() => {})
        },
      },
    })
    const { agent } = agentWith(['Amber.'], { memory, commitOnForward: true })
    const pending = agent(ask('Which door?'))
    const failure = failureOf(pending)
    const signal = await asked.promise
    pending.cancel()
    expect((await failure).code).toBe('cancelled')
    expect(signal?.aborted).toBe(true)
  }
})

it('a recall policy that could never work is refused where the agent is made', () => {
  const made = (recall: unknown) => () => agentWith([], { memory: 'local', recall: recall as false })
  for (const recall of [null, true, 'always']) expect(made(recall)).toThrow(/recall is a policy such as/)
  expect(made({ limit: 0, tokens: Number.NaN })).toThrow(
    /recall\.limit: .* not 0\n.*recall\.tokens: .* not NaN/,
  )
})

it('an entry of a backend that gives no proper time is shown without a day', async () => {
  const store = await open()
  await store.write([{ text: 'The door is amber.' }])
  const timeless: MemoryStore = Object.create(store, {
    find: {
      value: async (...args: Parameters<MemoryStore['find']>) => {
        const found = await store.find(...args)
        return { ...found, hits: found.hits.map(hit => ({ ...hit, at: 1e300 })) }
      },
    },
  })
  const { agent } = agentWith(['Amber.'], { memory: timeless })
  const out = await agent(ask('Which door?'))
  expect(memories(out)[0]?.injected).toMatch(/<memory id="[^"]+" scope="agent">The door is amber\.<\/memory>/)
})
