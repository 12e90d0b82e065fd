import { defaultFloor } from '../src/memory/calibrate.ts'
import { localMemory } from '../src/memory/drivers/local/local-memory.ts'
import { type Bench, judge, type Target, valueAtLeast, valueBelow } from './harness.ts'
import { type Corpus, halves, locomo, missing, xquad } from './memory/data.ts'
import { floorEffects, floorInSmall } from './memory/floor.ts'
import { openRath, ours } from './memory/quality.ts'
import { measureSpeed, type Percentiles } from './memory/speed.ts'

/**
 * How well memories are found, beside OpenRath's own BM25, and how fast. `OPENRATH_BENCH_MILLION=1` adds a store of a million entries, which
 * takes minutes to fill.
 */
export const bench: Bench = async report => {
  const backend = localMemory({ durability: 'normal' })

  const compare = async (
    what: string,
    corpora: readonly Corpus[],
    least: { recall10?: number; mrr?: number } = {},
  ) => {
    const mine = await ours(backend, corpora)
    const theirs = openRath(corpora)
    const name = `${mine.questions} questions`
    const line = (measure: 'recall5' | 'recall10' | 'mrr', title: string, limit?: number) => {
      const unit = measure === 'mrr' ? 'share' : 'percent'
      const figures = {
        ours: { value: mine[measure], unit, name },
        baseline: { value: theirs[measure], unit, name: 'OpenRath 1.2' },
      } as const
      report(
        judge(
          { what: `${what}, ${title}`, ...figures },
          limit === undefined ? undefined : valueAtLeast(limit),
        ),
      )
    }
    line('recall5', 'recall@5')
    line('recall10', 'recall@10', least.recall10)
    line('mrr', 'MRR', least.mrr)
  }
  const floors = async (what: string, corpora: readonly Corpus[]) => {
    for (const { floor, kept, empty } of await floorEffects(backend, corpora, [defaultFloor, 0.15])) {
      const at = `${what}, floor ${floor}`
      report({ what: `${at}: answers among ten hits that it keeps`, ours: { value: kept, unit: 'percent' } })
      report({
        what: `${at}: questions about something else that come back empty`,
        ours: { value: empty, unit: 'percent' },
      })
    }
  }
  const small = async (what: string, corpora: readonly Corpus[]) => {
    for (const size of [1, 3, 10, 100]) {
      const { kept, empty } = await floorInSmall(backend, corpora, size, defaultFloor)
      const among = `${what} among ${size}: `
      report({ what: `${among}answers that the default floor keeps`, ours: { value: kept, unit: 'percent' } })
      report({
        what: `${among}questions about something else that come back empty`,
        ours: { value: empty, unit: 'percent' },
      })
    }
  }
  const noLocomo = missing('locomo-1-5.json')
  if (noLocomo) console.error(`  left out: ${noLocomo}`)
  else {
    const conversations = locomo()
    await compare('LoCoMo 1–3', conversations.slice(0, 3))
    await compare('LoCoMo 4–5', conversations.slice(3), { recall10: 72 })
    await compare('LoCoMo 1–5', conversations, { recall10: 72, mrr: 0.52 })
    await floors('LoCoMo', conversations)
    await small('LoCoMo 4–5', conversations.slice(3))
  }
  const noXquad = missing('xquad-zh-part1.json')
  if (noXquad) console.error(`  left out: ${noXquad}`)
  else {
    const [first, second] = halves(xquad())
    await compare('Chinese XQuAD', [xquad()], { recall10: 97 })
    await compare('Chinese XQuAD, second half', [second], { recall10: 97 })
    await floors('Chinese XQuAD, in two halves', [first, second])
    await small('Chinese XQuAD, second half,', halves(second))
  }

  for (const entries of [1_000, 100_000, ...(process.env.OPENRATH_BENCH_MILLION ? [1_000_000] : [])]) {
    const speed = await measureSpeed(backend, entries)
    const isLargest = entries === 1_000_000
    const among = `${entries.toLocaleString('en')} entries`
    const time = (what: string, milliseconds: number, target?: Target) =>
      report(judge({ what: `${among}: ${what}`, ours: { value: milliseconds * 1e6, unit: 'ns' } }, target))
    const both = (what: string, { p50, p99 }: Percentiles) => {
      time(`${what}, p50`, p50, isLargest ? valueBelow(12e6) : undefined)
      time(`${what}, p99`, p99, isLargest ? valueBelow(35e6) : undefined)
    }
    both('find', speed.find)
    both('find with scope and category', speed.filtered)
    both('find between writes, updates and deletions', speed.mixed)
    time('durable write of one, without sync, p50', speed.write.p50, valueBelow(300e3))
    time('open and first find', speed.open + speed.firstFind, valueBelow(250e6))
    report({ what: `${among}: on disk`, ours: { value: speed.disk, unit: 'bytes' } })
    report({ what: `${among}: memory of an open store`, ours: { value: speed.memory, unit: 'bytes' } })
    time('filling it, per entry', (speed.buildSeconds * 1000) / entries)
  }
}
