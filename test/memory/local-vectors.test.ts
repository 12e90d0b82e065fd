import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import { type AiEmbeddingModel, type Embedder, toEmbedder } from '../../src/memory/embedding.ts'
import { refusalOf } from '../session/make.ts'
import { temporaryFolder } from '../store/folder.ts'
import { fakeEmbedder } from './embedder.ts'

function place(): string {
  const folder = temporaryFolder()
  onTestFinished(() => folder[Symbol.dispose]())
  return folder.path
}

const open = (path: string, embed?: Embedder) =>
  localMemory({ durability: 'normal', ...(embed && { embed }) }).open({ path })

const notes = ['The surgeon arrives at noon.', 'Bruno plays the violin.', 'The gate is painted green.']

test('what means the same is found without a word in common, and says how it was found', async () => {
  await using store = await open(place(), fakeEmbedder())
  await store.write(notes.map(text => ({ text })))
  const { hits, mode, fellBack } = await store.find('physician')
  expect(hits.map(hit => hit.text)).toEqual([notes[0]])
  expect([mode, fellBack]).toEqual(['both', undefined])
  expect((await store.find('physician', { mode: 'words' })).hits).toEqual([])
  expect((await store.find('physician', { mode: 'vectors' })).mode).toBe('vectors')
})

test('a model that fails is said, and words are used instead', async () => {
  const embed = fakeEmbedder()
  await using store = await open(place(), embed)
  embed.fail = new Error('no credit')
  await store.write(notes.map(text => ({ text })))
  const { hits, mode, fellBack } = await store.find('surgeon noon')
  expect(hits[0]?.text).toBe(notes[0])
  expect(mode).toBe('words')
  expect(fellBack).toContain('no credit')
  embed.fail = undefined
  expect((await store.find('physician')).hits[0]?.text).toBe(notes[0])
})

test('another model makes the vectors anew, and the same model none', async () => {
  const path = place()
  const first = fakeEmbedder()
  const store = await open(path, first)
  await store.write(notes.map(text => ({ text })))
  await store.find('physician')
  await store.close()
  const again = fakeEmbedder()
  await using same = await open(path, again)
  await same.find('physician')
  expect(again.asked.flat()).toEqual(['physician'])
  const other = fakeEmbedder({ model: 'fake/other', dimensions: 96 })
  await using changed = await open(path, other)
  expect((await changed.find('physician')).hits[0]?.text).toBe(notes[0])
  expect(other.asked.flat()).toEqual(expect.arrayContaining(notes))
})

test('a store without a model refuses to find by meaning', async () => {
  await using store = await open(place())
  expect((await refusalOf(store.find('physician', { mode: 'vectors' }))).code).toBe('memory-unsupported')
})

test('filters hold for meaning, too, and forgotten entries have no vector', async () => {
  const path = place()
  const store = await open(path, fakeEmbedder())
  const kept = await store.write(notes.map((text, i) => ({ text, scope: `user/${i}` })))
  expect((await store.find('physician', { scope: 'user/1' })).hits).toEqual([])
  await store.forget(kept[0]?.id as string)
  expect((await store.find('physician')).hits).toEqual([])
  await store.close()
  const db = new DatabaseSync(`${path}/memory.db`)
  expect(db.prepare('SELECT count(*) AS count FROM vector').get()).toEqual({ count: 2 })
  db.close()
})

test('more vectors than are held in memory are found by their sketches', async () => {
  // 64 MB of exact vectors hold 1,024 of 16,384 numbers.
  const embed = fakeEmbedder({ dimensions: 16_384 })
  await using store = await open(place(), embed)
  const texts = Array.from({ length: 1_060 }, (_, i) => `item${i} box${i % 7} shelf${i % 11}`)
  await store.write([...texts, 'The surgeon arrives at noon.'].map(text => ({ text })))
  for (;;) {
    const { fellBack, hits } = await store.find('physician')
    if (fellBack !== undefined) continue
    expect(hits[0]?.text).toBe('The surgeon arrives at noon.')
    break
  }
})

test('an AI SDK embedding model is an embedder, in calls of the size that it takes', async () => {
  const sizes: number[] = []
  const model: AiEmbeddingModel = {
    specificationVersion: 'v4',
    provider: 'acme',
    modelId: 'embed-1',
    maxEmbeddingsPerCall: 2,
    async doEmbed({ values }) {
      sizes.push(values.length)
      return { embeddings: values.map(text => [text.length, 1]) }
    },
  }
  const embedder = toEmbedder(model)
  expect(embedder.model).toBe('acme/embed-1')
  expect(await embedder.embed(['a', 'bb', 'ccc'], {})).toEqual([
    [1, 1],
    [2, 1],
    [3, 1],
  ])
  expect(sizes).toEqual([2, 1])
  expect(() => toEmbedder({ modelId: 'x' } as never)).toThrow(/embedding model/)
})

test('numbers that are none, or too few, are a failure of the model and no score', async () => {
  const answers = [
    () => [Number.NaN, 1, 2],
    (text: string) => (text === notes[0] ? [Number.POSITIVE_INFINITY, 1, 2] : [1, 2, 3]),
    () => [],
    () => ['a', 1, 2] as unknown as number[],
  ]
  for (const answer of answers) {
    await using store = await open(place(), { model: 'odd', embed: async texts => texts.map(answer) })
    await store.write(notes.map(text => ({ text })))
    const { hits } = await store.find('surgeon noon')
    expect(hits[0]?.text).toBe(notes[0])
    expect(hits.every(({ score }) => score > 0 && score <= 1)).toBe(true)
  }
})

test('a model that hangs keeps nobody: a question gives up, a signal ends it, and the store closes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const asked = Promise.withResolvers<void>()
  const hanging: Embedder = {
    model: 'hanging',
    embed: ([text]) => {
      if (text === 'surgeon noon') asked.resolve()
      return new Promise(() => {})
    },
  }
  const store = await open(place(), hanging)
  await store.write(notes.map(text => ({ text })))
  const found = store.find('surgeon noon')
  await asked.promise
  vi.advanceTimersByTime(30_000)
  const { hits, fellBack } = await found
  expect(hits[0]?.text).toBe(notes[0])
  expect(fellBack).toContain('hanging failed: it did not answer within 30 s')
  const stop = new AbortController()
  const stopped = refusalOf(store.find('surgeon', { signal: stop.signal }))
  stop.abort()
  expect((await stopped).code).toBe('cancelled')
  const left = refusalOf(store.find('surgeon'))
  await store.close()
  expect((await left).code).toBe('store-closed')
})

test('an entry that the model refuses is found by words, and keeps no other from its vector', async () => {
  const embed = fakeEmbedder()
  const strict: Embedder = {
    ...embed,
    embed: async (texts, options) => {
      if (texts.some(text => text.includes('forbidden'))) throw new Error('content filter')
      return embed.embed(texts, options)
    },
  }
  await using store = await open(place(), strict)
  const entries = ['A forbidden sentence.', ...notes, 'Another forbidden one.']
  await store.write(entries.map(text => ({ text })))
  const { hits, mode, fellBack } = await store.find('physician')
  expect([hits.map(({ text }) => text), mode, fellBack]).toEqual([[notes[0]], 'both', undefined])
  expect((await store.find('sentence', { mode: 'words' })).hits[0]?.text).toBe(entries[0])
})

test('a text is embedded as far as models read', async () => {
  const embed = fakeEmbedder()
  await using store = await open(place(), embed)
  await store.write([{ text: `${'surgeon '.repeat(2_000)}😀` }])
  await store.find('physician')
  expect(Math.max(...embed.asked.flat().map(text => text.length))).toBe(8_000)
})

test('two programs that open a memory with different models do not mix their vectors', async () => {
  const path = place()
  await using first = await open(path, fakeEmbedder({ model: 'fake/first' }))
  await first.write([{ text: notes[0] as string }])
  expect((await first.find('physician')).mode).toBe('both')
  await using second = await open(path, fakeEmbedder({ model: 'fake/second', dimensions: 96 }))
  await first.write(notes.slice(1).map(text => ({ text })))
  const { mode, fellBack } = await first.find('surgeon noon')
  expect([mode, fellBack]).toEqual(['words', expect.stringContaining('fake/second')])
  expect((await second.find('violin', { mode: 'vectors' })).hits[0]?.text).toBe(notes[1])
})

test('a model of the same name with other dimensions makes its vectors anew, or says what to do', async () => {
  const path = place()
  const ask = async (embed: Embedder) => {
    await using store = await open(path, embed)
    return await store.find('physician')
  }
  await using plain = await open(path)
  await plain.write(notes.map(text => ({ text })))
  await ask(fakeEmbedder({ dimensions: 64 }))
  expect((await ask(fakeEmbedder({ dimensions: 96 }))).hits[0]?.text).toBe(notes[0])
  const { dimensions: _, ...unsaid } = fakeEmbedder({ dimensions: 128 })
  expect((await ask(unsaid)).fellBack).toContain('a model that has changed needs another name')
})
