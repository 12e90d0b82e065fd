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

/**
 * The same in small stores: of a question's corpus, the entry that answers it and others by chance, so many in all. `kept` is of the answers that share
 * a word with their question; `empty` of the questions of the next corpus, asked of the same store.
 */
export async function floorInSmall(
  backend: MemoryBackend,
  corpora: readonly Corpus[],
  size: number,
  floor: number,
  samples = 100,
): Promise<FloorEffect> {
  const path = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  const below = chance()
  const pick = <T>(list: readonly T[]) => list[below(list.length)] as T
  let [shared, kept, empty] = [0, 0, 0]
  try {
    await using store = await backend.open({ path })
    for (let sample = 0; sample < samples; sample++) {
      const place = below(corpora.length)
      const { entries, questions } = corpora[place] as Corpus
      const asked = pick(questions)
      const chosen = new Set(entries.filter(({ id }) => id === asked.relevant[0]))
      while (chosen.size < Math.min(size, entries.length)) chosen.add(pick(entries))
      const written = await store.write(
        entries
          .filter(entry => chosen.has(entry))
          .map(({ text, series }, index) => ({ text, source: { series: `${sample} ${series}`, index } })),
      )
      const answer = entries.find(({ id }) => id === asked.relevant[0])?.text
      const { hits } = await store.find(asked.text, { limit: 10, mode: 'words', floor: 0 })
      const score = hits.find(({ text }) => text === answer)?.score
      if (score !== undefined) shared++
      if (score !== undefined && score >= floor) kept++
      const stranger = pick((corpora[(place + 1) % corpora.length] as Corpus).questions)
      if ((await store.find(stranger.text, { mode: 'words', floor })).hits.length === 0) empty++
      for (const { id } of written) await store.forget(id)
    }
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
  return { floor, kept: (100 * kept) / shared, empty: (100 * empty) / samples }
}

/** The same numbers in every run. */
function chance(): (limit: number) => number {
  let state = 7
  return limit => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
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
