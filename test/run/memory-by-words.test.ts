import { expect, onTestFinished, test, vi } from 'vitest'
import { fakeEmbedder } from '../memory/embedder.ts'
import { folder } from './memory/make.ts'

// A process is warned once, and other files of tests may have been: modules are loaded again, and one test tells the whole story.
test('the first recall by words alone says so, once, and how to recall by meaning', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => warned.mockRestore())
  vi.resetModules()
  const { Agent } = await import('../../src/flow/agent.ts')
  const { localMemory } = await import('../../src/memory/drivers/local/local-memory.ts')
  const { scripted } = await import('../../src/testing/scripted.ts')
  const model = scripted([])
  const words = { backend: 'local', path: folder() }

  const meaning = localMemory({ folder: folder(), durability: 'normal', embed: fakeEmbedder() })
  await using clever = new Agent('Be brief.', { memory: meaning, model })
  await clever.remember('The doctor moved to Porto.')
  expect((await clever.recall('Where is the surgeon?'))[0]?.text).toBe('The doctor moved to Porto.')

  await using plain = new Agent('Be brief.', { memory: words, model })
  await plain.remember('The doctor moved to Porto.')
  await plain.recall('Where is the surgeon?', { mode: 'words' })
  await using meant = new Agent('Be brief.', { memory: words, model, recall: { mode: 'words' } })
  await meant.recall('Where is the surgeon?')
  expect(warned).not.toHaveBeenCalled()

  expect(await plain.recall('Where is the surgeon?')).toEqual([])
  expect((await plain.recall('Who moved to Porto?'))[0]?.text).toBe('The doctor moved to Porto.')
  await using another = new Agent('Be brief.', { memory: words, model })
  await another.recall('Who moved to Porto?')
  expect(warned.mock.calls).toEqual([
    [
      expect.stringMatching(/recalls by words alone.*configure\(\{ embed: .*recall: \{ mode: 'words' \}/),
      { type: 'OpenRathWarning', code: 'OPENRATH_RECALL_BY_WORDS' },
    ],
  ])
})
