import { rmSync } from 'node:fs'
import { test } from 'vitest'
import { localMemory } from '../../src/memory/drivers/local/local-memory.ts'
import { testMemory } from '../../src/testing/memory.ts'
import { temporaryFolder } from '../store/folder.ts'
import { fakeEmbedder } from './embedder.ts'

const places = {
  spec: () => ({ path: temporaryFolder().path }),
  dispose: ({ path }: { readonly path?: unknown }) =>
    rmSync(path as string, { recursive: true, force: true }),
}

for (const { name, run } of testMemory(localMemory({ durability: 'normal' }), places))
  test(`by words: ${name}`, run)

const withVectors = localMemory({ durability: 'normal', embed: fakeEmbedder() })
for (const { name, run } of testMemory(withVectors, places)) test(`with vectors: ${name}`, run)
