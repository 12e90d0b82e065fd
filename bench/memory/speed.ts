import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MemoryBackend, MemoryStore } from '../../src/memory/spec.ts'
import { spread } from '../harness.ts'
import { Zipf } from './zipf.ts'

export interface Speed {
  readonly entries: number
  readonly buildSeconds: number
  /** Bytes on disk, and of this process beyond what it had before the store was opened again. */
  readonly disk: number
  readonly memory: number
  /** Milliseconds. */
  readonly open: number
  readonly firstFind: number
  readonly find: Percentiles
  readonly filtered: Percentiles
  readonly mixed: Percentiles
  /** One entry, awaited before the next. */
  readonly write: Percentiles
}

export interface Percentiles {
  readonly p50: number
  readonly p99: number
}

const asked = 300

/** Builds a store of so many entries of about 30 words and asks it. Times are processor time of this process. */
export async function measureSpeed(backend: MemoryBackend, entries: number): Promise<Speed> {
  const path = mkdtempSync(join(tmpdir(), 'openrath-bench-'))
  const zipf = new Zipf()
  try {
    const start = performance.now()
    const building = await backend.open({ path })
    const known: string[] = []
    for (let done = 0; done < entries; done += 2_000) {
      const texts = Array.from({ length: Math.min(2_000, entries - done) }, () => zipf.text(30))
      await building.write(
        texts.map((text, i) => {
          const n = done + i
          return {
            text,
            scope: `user/${n % 100}`,
            category: n % 5 === 0 ? 'turn' : 'fact',
            source: { series: `talk/${Math.floor(n / 20)}`, index: n % 20 },
          }
        }),
      )
      if (known.length < 2 * asked) known.push(...texts.slice(0, 20))
    }
    await building.close()
    const buildSeconds = (performance.now() - start) / 1000
    globalThis.gc?.()
    const before = process.memoryUsage.rss()
    const opened = performance.now()
    await using store = await backend.open({ path })
    const open = performance.now() - opened
    const questions = Array.from({ length: asked }, (_, i) =>
      questionFrom(known[i % known.length] as string, zipf),
    )
    const first = performance.now()
    await store.find(questions[0] as string)
    const firstFind = performance.now() - first
    for (const question of questions.slice(0, 30)) await store.find(question)
    const find = await each(questions, question => store.find(question))
    const filtered = await each(questions, (question, i) =>
      store.find(question, { scope: `user/${i % 100}`, category: 'fact' }),
    )
    const write = await each(questions, () => store.write([{ text: zipf.text(30), scope: 'user/1' }]))
    const mixed = await mix(store, questions, zipf)
    const memory = process.memoryUsage.rss() - before
    const disk = readdirSync(path).reduce((sum, file) => sum + statSync(join(path, file)).size, 0)
    return { entries, buildSeconds, disk, memory, open, firstFind, find, filtered, mixed, write }
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

/** Finds between forgetting, updating and writing, so that each meets an index that has just changed. */
async function mix(store: MemoryStore, questions: readonly string[], zipf: Zipf): Promise<Percentiles> {
  const { entries: some } = await store.list({ limit: 900 })
  let next = 0
  const times: number[] = []
  for (const [i, question] of questions.entries()) {
    await store.forget(some[next++]?.id as string)
    await store.update(some[next++]?.id as string, { text: zipf.text(30) })
    await store.write([{ text: zipf.text(30), scope: `user/${i % 100}` }])
    times.push(await cpu(() => store.find(question, i % 2 ? { scope: `user/${i % 100}` } : {})))
  }
  return percentiles(times)
}

async function each<T>(
  items: readonly T[],
  work: (item: T, i: number) => Promise<unknown>,
): Promise<Percentiles> {
  const times: number[] = []
  for (const [i, item] of items.entries()) times.push(await cpu(() => work(item, i)))
  return percentiles(times)
}

async function cpu(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

function percentiles(times: readonly number[]): Percentiles {
  const sorted = [...times].sort((a, b) => a - b)
  return { p50: spread(times).median, p99: sorted[Math.floor(sorted.length * 0.99)] as number }
}

/** Four words of an entry that is there, in the words of somebody who asks. */
function questionFrom(text: string, zipf: Zipf): string {
  const words = text.split(' ')
  return `what did the user say about ${Array.from({ length: 4 }, () => words[zipf.below(words.length)]).join(' ')}`
}
