import { likelihoods } from '../../calibrate.ts'
import { type Question, questionOf, type Term, type WeighedPart, weigh } from '../../question.ts'
import type { MemoryFilter } from '../../spec.ts'
import { tuning } from '../../tuning.ts'
import { matching, visible } from './filter.ts'
import type { Queries } from './pool.ts'
import { type Candidate, rank, withPairs } from './rank.ts'

export interface Finding {
  readonly queries: Queries
  readonly place: number
  readonly now: number
}

export interface Scored {
  readonly n: string
  readonly score: number
}

/** As many of the best by their own words are looked at with their neighbours. */
const lookedAt = 300
/** The neighbours of so many of the best may be hits themselves, without a word of their own. */
const neighboursLookedAt = 100
/** So many of the best are read for words side by side. */
const textsLookedAt = 60

/** By words: the server finds the best by themselves, and they are ranked here with their neighbours, as in the local backend. */
export async function findByWords(finding: Finding, query: string, filter: MemoryFilter): Promise<Scored[]> {
  const question = questionOf(query)
  if (question.words.length === 0) return []
  const { terms, parts, average } = await termsIn(finding, question)
  const first = await bestByThemselves(finding, terms, average, filter)
  if (first.size === 0) return []
  const contexts = await contextsOf(finding, [...first.keys()], filter)
  const nearest = [...first.keys()].slice(0, neighboursLookedAt)
  const beside = [...new Set(nearest.flatMap(n => (contexts.get(n) ?? []).map(([other]) => other)))]
  const added = await lengthsOf(
    finding,
    beside.filter(n => !first.has(n)),
    filter,
  )
  for (const [n, context] of await contextsOf(finding, [...added.keys()], filter)) contexts.set(n, context)
  const lengths = new Map([...first, ...added])
  const candidates: Candidate[] = [...lengths].map(([n, length]) => ({
    n,
    length,
    context: contexts.get(n) ?? [],
  }))
  const needed = new Set(candidates.flatMap(({ n, context }) => [n, ...context.map(([other]) => other)]))
  const counts = await countsOf(finding, terms, [...needed])
  const ranked = rank(terms, parts, candidates, counts, average)
  const toRead = ranked.slice(0, textsLookedAt).filter(({ n }) => (counts.get(n)?.size ?? 0) > 1)
  const texts = await textsOf(finding, question.sequence.length > 1 ? toRead.map(({ n }) => n) : [])
  const best = withPairs(ranked, question, terms, texts, lengths, average)
  const scores = likelihoods(best)
  return best.map(({ n }, i) => ({ n, score: scores[i] as number }))
}

async function termsIn(
  { queries, place }: Finding,
  question: Question,
): Promise<{ terms: readonly Term[]; parts: readonly WeighedPart[]; average: number }> {
  const words = question.words.map(({ word }) => word)
  const [all] = await queries.query<{ entries: string; words: string }>(
    'SELECT entries, words FROM openrath_memory.place WHERE n = $1',
    [place],
  )
  const rows = await queries.query<{ word: string; count: string }>(
    'SELECT word, count(*) FROM openrath_memory.word WHERE place = $1 AND word = ANY ($2::text[]) GROUP BY word',
    [place, words],
  )
  const entries = Number(all?.entries ?? 0)
  const have = new Map(rows.map(({ word, count }) => [word, Number(count)]))
  return {
    ...weigh(question, entries, at => have.get(words[at] as string) ?? 0),
    average: Math.max(1, Number(all?.words ?? 0) / Math.max(1, entries)),
  }
}

/** The best by their own words alone, and their lengths. */
async function bestByThemselves(
  { queries, place, now }: Finding,
  terms: readonly Term[],
  average: number,
  filter: MemoryFilter,
): Promise<Map<string, number>> {
  const { k1, b } = tuning
  const values = [place, terms.map(term => term.word), terms.map(term => term.weight)]
  const where = matching(place, filter, now, values)
  const rows = await queries.query<{ n: string; length: number }>(
    `SELECT entry.n, entry.length
     FROM openrath_memory.word JOIN unnest($2::text[], $3::float8[]) AS asked (word, weight) USING (word)
       JOIN openrath_memory.entry ON entry.n = word.entry
     WHERE word.place = $1 AND ${where}
     GROUP BY entry.n, entry.length
     ORDER BY sum(asked.weight * word.count / (word.count + ${k1} * (${1 - b} + ${b} * word.length / ${average}))) DESC, entry.n DESC
     LIMIT ${lookedAt}`,
    where.values,
  )
  return new Map(rows.map(({ n, length }) => [n, length]))
}

/** The entries before and behind each in its series, as far as the asker sees them. */
async function contextsOf(
  { queries, place, now }: Finding,
  numbers: readonly string[],
  filter: MemoryFilter,
): Promise<Map<string, (readonly [string, number])[]>> {
  const contexts = new Map<string, (readonly [string, number])[]>()
  if (numbers.length === 0) return contexts
  const where = visible(place, filter.lane, now, [numbers])
  const side = (name: string, compare: '<' | '>', order: 'DESC' | 'ASC') => `
    (SELECT '${name}' AS side, entry.n AS other, row_number() OVER (ORDER BY entry.position ${order}) AS step
     FROM openrath_memory.entry
     WHERE ${where} AND entry.series = own.series AND entry.position ${compare} own.position
     ORDER BY entry.position ${order} LIMIT ${tuning.reach})`
  const rows = await queries.query<{ n: string; side: 'before' | 'after'; other: string; step: string }>(
    `SELECT own.n, near.side, near.other, near.step
     FROM openrath_memory.entry AS own
       CROSS JOIN LATERAL (${side('before', '<', 'DESC')} UNION ALL ${side('after', '>', 'ASC')}) AS near
     WHERE own.n = ANY ($1::bigint[]) AND own.series IS NOT NULL`,
    where.values,
  )
  for (const { n, side: which, other, step } of rows) {
    const context = contexts.get(n) ?? []
    context.push([other, tuning[which] * tuning.decay ** (Number(step) - 1)])
    contexts.set(n, context)
  }
  return contexts
}

/** The lengths of those that the filter lets through. */
async function lengthsOf(
  { queries, place, now }: Finding,
  numbers: readonly string[],
  filter: MemoryFilter,
): Promise<Map<string, number>> {
  if (numbers.length === 0) return new Map()
  const where = matching(place, filter, now, [numbers])
  const rows = await queries.query<{ n: string; length: number }>(
    `SELECT entry.n, entry.length FROM openrath_memory.entry WHERE entry.n = ANY ($1::bigint[]) AND ${where}`,
    where.values,
  )
  return new Map(rows.map(({ n, length }) => [n, length]))
}

async function countsOf(
  { queries, place }: Finding,
  terms: readonly Term[],
  numbers: readonly string[],
): Promise<Map<string, Map<string, number>>> {
  const rows = await queries.query<{ n: string; word: string; count: number }>(
    `SELECT entry AS n, word, count FROM openrath_memory.word
     WHERE place = $1 AND word = ANY ($2::text[]) AND entry = ANY ($3::bigint[])`,
    [place, terms.map(term => term.word), numbers],
  )
  const counts = new Map<string, Map<string, number>>()
  for (const { n, word, count } of rows) {
    const here = counts.get(n) ?? new Map<string, number>()
    counts.set(n, here.set(word, count))
  }
  return counts
}

async function textsOf({ queries }: Finding, numbers: readonly string[]): Promise<Map<string, string>> {
  if (numbers.length === 0) return new Map()
  const rows = await queries.query<{ n: string; body: string }>(
    'SELECT n, body FROM openrath_memory.entry WHERE n = ANY ($1::bigint[])',
    [numbers],
  )
  return new Map(rows.map(({ n, body }) => [n, body]))
}
