import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MemoryBackend } from '../../src/memory/spec.ts'
import type { Corpus } from './data.ts'

export interface FloorEffect {
  readonly floor: number
  /** Of the answers among ten hits without a floor, those that are still there; in percent. */
  readonly kept: number
  /** Of the questions asked of a corpus that knows nothing about them, those without hits; in percent. */
  readonly empty: number
}

/** What floors cost and bring: the questions of each corpus are asked of it, and of the one after it. */
export async function floorEffects(
  backend: MemoryBackend,
  corpora: readonly Corpus[],
  floors: readonly number[],
): Promise<FloorEffect[]> {
  const answers: number[] = []
  const strangers: number[] = []
  for (const [i, { entries, questions }] of corpora.entries()) {
    const path = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
    try {
      await using store = await backend.open({ path })
      const kept = await store.write(
        entries.map(({ text, series }, index) => ({ text, source: { series, index } })),
      )
      const names = new Map(kept.map(({ id }, n) => [id, entries[n]?.id as string]))
      const ask = async (text: string) =>
        (await store.find(text, { limit: 10, mode: 'words', floor: 0 })).hits
      for (const { text, relevant } of questions) {
        const hits = await ask(text)
        answers.push(
          ...hits.filter(({ id }) => relevant.includes(names.get(id) as string)).map(({ score }) => score),
        )
      }
      const other = corpora[(i + 1) % corpora.length] as Corpus
      for (const { text } of other.questions) strangers.push((await ask(text))[0]?.score ?? 0)
    } finally {
      rmSync(path, { recursive: true, force: true })
    }
  }
  const part = (scores: readonly number[], holds: (score: number) => boolean) =>
    (100 * scores.filter(holds).length) / scores.length
  return floors.map(floor => ({
    floor,
    kept: part(answers, score => score >= floor),
    empty: part(strangers, score => score < floor),
  }))
}
