import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MemoryBackend } from '../../src/memory/spec.ts'
import type { Corpus } from './data.ts'
import { OpenRathBm25 } from './openrath-bm25.ts'

export interface Quality {
  /** Of the entries that answer a question, the part among the first five and ten; in percent. */
  readonly recall5: number
  readonly recall10: number
  /** One divided by the place of the first that answers, 0 when it is not among ten. */
  readonly mrr: number
  readonly questions: number
}

/** Asks every question of ten hits, with a store for each corpus. */
export async function ours(backend: MemoryBackend, corpora: readonly Corpus[]): Promise<Quality> {
  const found: Asked[] = []
  for (const { entries, questions } of corpora) {
    const path = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
    try {
      await using store = await backend.open({ path })
      const kept = await store.write(
        entries.map(({ text, series }, index) => ({ text, source: { series, index } })),
      )
      const names = new Map(kept.map(({ id }, i) => [id, entries[i]?.id as string]))
      for (const { text, relevant } of questions) {
        const { hits } = await store.find(text, { limit: 10, mode: 'words' })
        found.push({ relevant, hits: hits.map(({ id }) => names.get(id) as string) })
      }
    } finally {
      rmSync(path, { recursive: true, force: true })
    }
  }
  return qualityOf(found)
}

export function openRath(corpora: readonly Corpus[]): Quality {
  return qualityOf(
    corpora.flatMap(({ entries, questions }) => {
      const index = new OpenRathBm25()
      for (const { id, text } of entries) index.add(id, text)
      return questions.map(({ text, relevant }) => ({ relevant, hits: index.find(text, 10) }))
    }),
  )
}

interface Asked {
  readonly relevant: readonly string[]
  readonly hits: readonly string[]
}

function qualityOf(asked: readonly Asked[]): Quality {
  const mean = (measure: (one: Asked) => number) =>
    asked.reduce((sum, one) => sum + measure(one), 0) / asked.length
  const recall = (limit: number) =>
    100 *
    mean(
      ({ relevant, hits }) =>
        relevant.filter(id => hits.slice(0, limit).includes(id)).length / relevant.length,
    )
  return {
    recall5: recall(5),
    recall10: recall(10),
    mrr: mean(({ relevant, hits }) => {
      const place = hits.findIndex(id => relevant.includes(id))
      return place < 0 ? 0 : 1 / (place + 1)
    }),
    questions: asked.length,
  }
}
