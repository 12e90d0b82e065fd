import { setImmediate } from 'node:timers/promises'
import type { MemoryLike } from '../../../src/run/memory/memories.ts'
import type { Runtime } from '../../../src/run/runtime.ts'
import type { RunStore, Store } from '../../../src/store/spec.ts'
import { seeded } from '../journal/drive.ts'
import type { World } from './program.ts'

/** How a program is disturbed: where each life of it ends, and which answers fail once. */
export interface Weather {
  readonly seed: number
  /** After how many writes and counted things each life is cut off; one that does not get that far ends by itself. */
  readonly lives: readonly number[]
  /** Steps whose model fails in the first life that asks it. */
  readonly failing: readonly number[]
}

/** How one life ended: cut off, with the run done, or with the code of an error. */
export type End = 'cut' | 'done' | 'run-waiting' | 'needs-review' | 'away'

export interface Driven {
  readonly run: string
  /** What the models and tools counted themselves: `pay 3`, `fail 2`. */
  readonly ledger: readonly string[]
  /** How often it was cut off. */
  readonly cuts: number
}

export interface Lives {
  readonly run: string
  /** Begins the run or continues it, from nothing but what is on record. */
  live(life: number): Promise<End>
  ledger(): readonly string[]
  /** The runtime of the person who decides and reviews. */
  readonly runtime: Runtime
}

/** Lives as many lives as it takes, with a person in between who approves and reviews. */
export async function drive({ run, live, ledger, runtime }: Lives): Promise<Driven> {
  let cuts = 0
  for (let life = 0; life < 100; life++) {
    const end = await live(life)
    if (end === 'done') return { run, ledger: ledger(), cuts }
    if (end === 'cut') cuts++
    if (end === 'run-waiting')
      for (const { approval } of await runtime.approvals(run))
        await runtime.decide(run, approval, { verdict: 'approved', by: 'a person' })
    if (end === 'needs-review') {
      // A tool that was cancelled may still be at work: who finds out what happened looks when it has ended.
      for (let turn = 0; turn < 100; turn++) await setImmediate()
      await review(run, runtime, ledger())
    }
  }
  throw new Error('it never ended')
}

/** What surrounds the program in one life. */
export function worldOf(
  { seed, failing }: Weather,
  life: number,
  fuse: Fuse,
  ledger: { readonly lines: () => readonly string[]; add(line: string): void },
  memory: MemoryLike,
): World {
  const random = seeded(seed + life)
  return {
    memory,
    count: async (what, step) => {
      await fuse.tick()
      ledger.add(`${what} ${step}`)
      await fuse.tick()
    },
    delay: () => Math.floor(random() * 5),
    fails: step => {
      const line = `fail ${step}`
      if (!failing.includes(step) || ledger.lines().includes(line)) return false
      ledger.add(line)
      return true
    },
  }
}

/** Cuts a life off after so many ticks: before a write or after it, before something is done or before that is on record. */
export class Fuse {
  #left: number
  readonly #burn: () => void

  constructor(left: number | undefined, burn: () => void) {
    this.#left = left ?? Number.POSITIVE_INFINITY
    this.#burn = burn
  }

  /** Does not come back once it is burnt. */
  tick(): Promise<void> | undefined {
    if (this.#left-- > 0) return undefined
    this.#burn()
    return new Promise<void>(() => {})
  }

  around(store: Store): Store {
    const { runs, sessions } = store
    const claim: RunStore['claim'] = async (...args) =>
      this.#guard(await this.#guard(runs, ['claim']).claim(...args), ['append', 'renew', 'release'])
    const begin: RunStore['begin'] = (...args) =>
      this.#guard(runs.begin(...args), ['append', 'renew', 'release'])
    return {
      ...store,
      runs: { ...this.#guard(runs, ['create', 'decide']), claim, begin },
      sessions: this.#guard(sessions, ['put', 'append']),
    }
  }

  #guard<T extends object>(part: T, writes: readonly (keyof T)[]): T {
    const guarded = { ...part }
    for (const name of writes) {
      const write = part[name] as (...args: unknown[]) => unknown
      guarded[name] = ((...args: unknown[]) =>
        this.tick() ?? this.#done(write.apply(part, args))) as T[keyof T]
    }
    return guarded
  }

  #done(result: unknown): unknown {
    if (!(result instanceof Promise)) return this.tick() ?? result
    return result.then(async value => {
      await this.tick()
      return value
    })
  }
}

/** A person finds out: the ledger says what was done, the journal what of it is on record. */
async function review(run: string, runtime: Runtime, ledger: readonly string[]): Promise<void> {
  for (const { id, kind, request } of await runtime.unfinished(run)) {
    const line = lineOf(kind, request)
    const onRecord = (await runtime.runs.journal(run)).filter(
      entry =>
        entry.kind === kind &&
        entry.outcome !== undefined &&
        lineOf(entry.kind, (entry.request as { request?: unknown }).request) === line,
    ).length
    const done = ledger.filter(one => one === line).length
    const step = line.split(' ')[1]
    const result = line.startsWith('pay') ? `receipt of ${step}` : `mail ${step}`
    await runtime.review(run, id, { happened: done > onRecord, result })
  }
}

/** What the ledger says of an effect. */
function lineOf(kind: string, request: unknown): string {
  const { tool, args, step } = (request ?? {}) as { tool?: string; args?: { step?: number }; step?: number }
  return `${tool ?? kind} ${args?.step ?? step}`
}
