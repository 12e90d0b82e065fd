import { defaultFloor, likelihoods } from '../../calibrate.ts'
import { questionOf } from '../../question.ts'
import type { FindOptions, Hit, MemoryFilter } from '../../spec.ts'
import type { Database } from './database.ts'
import { accepting } from './filter.ts'
import type { Names } from './names.ts'
import type { Ranker } from './rank.ts'
import { rowByNumber, toMemory } from './rows.ts'
import type { WordIndex } from './word-index.ts'

export interface Finding {
  readonly db: Database
  readonly names: Names
  readonly index: WordIndex
  readonly ranker: Ranker
  readonly now: number
}

/** By words, inside a read. */
export function findByWords(
  finding: Finding,
  query: string,
  filter: MemoryFilter,
): { n: number; score: number }[] {
  const { db, index, ranker } = finding
  const ranked = ranker.rank(questionOf(query), index, db, accepting(filter, finding))
  const scores = likelihoods(ranked)
  return ranked.map(({ n }, i) => ({ n, score: scores[i] as number }))
}

export function hitsOf(
  { db, names }: Finding,
  scored: readonly { n: number; score: number }[],
  { floor = defaultFloor, limit = 5 }: FindOptions,
): Hit[] {
  const hits: Hit[] = []
  for (const { n, score } of scored) {
    if (score < floor || hits.length === limit) break
    const row = rowByNumber(db, n)
    if (row) hits.push({ ...toMemory(row, names, db.path), score })
  }
  return hits
}
