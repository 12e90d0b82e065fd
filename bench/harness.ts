/** A figure of one line of the table. Times are in nanoseconds. */
export interface Figure {
  readonly value: number
  readonly unit: 'ns' | 'bytes' | 'exponent' | 'percent' | 'share'
  /** What was measured, where the line's own text does not say it. */
  readonly name?: string
}

export interface Spread {
  readonly median: number
  /** First and third quartile of the rounds. */
  readonly low: number
  readonly high: number
}

/** What a line promises: its ratio, or its own value where there is no ratio, stays at or below a number; with `least`, at or above. */
export interface Target {
  readonly of: 'ratio' | 'value'
  readonly least?: boolean
  readonly limit: number
  /** True when the limit itself is still allowed. */
  readonly inclusive: boolean
}

export interface Line {
  readonly what: string
  readonly ours: Figure
  readonly baseline?: Figure
  /** Ours to the baseline, taken within each round; its median is not the quotient of the two medians. */
  readonly ratio?: Spread
  readonly target?: Target
  readonly met?: boolean
}

/** A benchmark file exports one of these as `bench` and reports a line as soon as it has measured it. */
export type Bench = (report: (line: Line) => void) => Promise<void>

export const ratioAtMost = (limit: number): Target => ({ of: 'ratio', limit, inclusive: true })
export const valueBelow = (limit: number): Target => ({ of: 'value', limit, inclusive: false })
export const valueAtLeast = (limit: number): Target => ({ of: 'value', limit, inclusive: true, least: true })

/**
 * Something to time. `prepare` makes what a run needs, `finish` puts it away, and neither is timed; `operations` is how many
 * a run does. A task whose growth is measured is run several times on what one `prepare` made.
 */
export interface Task<Input = unknown> {
  readonly name: string
  readonly operations: number
  prepare?(): Input | Promise<Input>
  run(input: Input): unknown
  finish?(input: Input): unknown
}

export interface Rounds {
  /** Rounds that count. Default 9. */
  readonly rounds?: number
  /** Rounds before them that do not. Default 3. */
  readonly warmUps?: number
  /** What is collected before each timed run. `major` is exact and slow on a large heap. Default `minor`. */
  readonly collect?: 'minor' | 'major'
  /** `processor`: the time that this process spent on a core, which says the same while others are at work. Default `wall`. */
  readonly clock?: 'wall' | 'processor'
}

/** Times two tasks turn by turn in one process, so that a slow moment of the machine meets both. */
export async function compareTime<A, B>(
  what: string,
  ours: Task<A>,
  baseline: Task<B>,
  options: Rounds & { readonly target?: Target } = {},
): Promise<Line> {
  const { rounds = 9, warmUps = 3, target } = options
  const mine: number[] = []
  const theirs: number[] = []
  for (let round = -warmUps; round < rounds; round++) {
    const oursFirst = round % 2 === 0
    let a = oursFirst ? await time(ours, options) : 0
    const b = await time(baseline, options)
    if (!oursFirst) a = await time(ours, options)
    if (round < 0) continue
    mine.push(a)
    theirs.push(b)
  }
  const ratio = spread(mine.map((a, i) => a / (theirs[i] as number)))
  return judge(
    {
      what,
      ours: { value: spread(mine).median, unit: 'ns', name: ours.name },
      baseline: { value: spread(theirs).median, unit: 'ns', name: baseline.name },
      ratio,
    },
    target,
  )
}

/** Times one run of a task that cannot be repeated, because it changes what it runs on. */
export async function timeOnce<A>(task: Task<A>): Promise<Figure> {
  return { value: await time(task, {}), unit: 'ns', name: task.name }
}

/** Heap that stays per operation, of two makers in turn. What they make is kept until the heap has been read. */
export function compareHeap(
  what: string,
  ours: Maker,
  baseline: Maker,
  options: { readonly rounds?: number; readonly target?: Target } = {},
): Line {
  const mine: number[] = []
  const theirs: number[] = []
  for (let round = 0; round < (options.rounds ?? 2); round++) {
    mine.push(heapPerOperation(ours))
    theirs.push(heapPerOperation(baseline))
  }
  return judge(
    {
      what,
      ours: { value: spread(mine).median, unit: 'bytes', name: ours.name },
      baseline: { value: spread(theirs).median, unit: 'bytes', name: baseline.name },
      ratio: spread(mine.map((a, i) => a / (theirs[i] as number))),
    },
    options.target,
  )
}

/** Heap that stays per operation, with a limit in bytes. */
export function measureHeap(
  what: string,
  maker: Maker,
  options: { readonly rounds?: number; readonly target?: Target } = {},
): Line {
  const bytes = Array.from({ length: options.rounds ?? 2 }, () => heapPerOperation(maker))
  return judge(
    { what, ours: { value: spread(bytes).median, unit: 'bytes', name: maker.name } },
    options.target,
  )
}

/** Something to keep in memory, `count` times. */
export interface Maker {
  readonly name: string
  readonly count: number
  make(i: number): unknown
}

/**
 * How time grows with size: the slope of a line through the sizes, both axes logarithmic, fitted in every round.
 * 1 is linear. The line compares the time per operation at the largest size with that at the smallest.
 */
export async function measureGrowth<A>(
  what: string,
  sizes: readonly number[],
  taskOf: (size: number) => Task<A>,
  options: Rounds & { readonly target?: Target } = {},
): Promise<{ readonly growth: Line; readonly perOperation: readonly Line[] }> {
  const { rounds = 7, warmUps = 2, target } = options
  const tasks = sizes.map(size => {
    // A small size is run often enough for its sum to be worth a clock's while.
    const task = taskOf(size)
    return { task, repeats: Math.max(1, Math.floor(30_000 / size)) }
  })
  const times: number[][] = sizes.map(() => [])
  const slopes: number[] = []
  for (let round = -warmUps; round < rounds; round++) {
    const order = [...tasks.keys()]
    if (round % 2) order.reverse()
    const measured: number[] = []
    for (const i of order) {
      const { task, repeats } = tasks[i] as (typeof tasks)[number]
      measured[i] = await time(task, options, repeats)
    }
    if (round < 0) continue
    for (const [i, value] of measured.entries()) times[i]?.push(value)
    slopes.push(slope(sizes, measured))
  }
  const figures = sizes.map(
    (_, i): Figure => ({ value: spread(times[i] ?? []).median, unit: 'ns', name: tasks[i]?.task.name ?? '' }),
  )
  const smallest = figures[0] as Figure
  const perOperation = figures.slice(1).map((ours, i): Line => {
    const ratios = (times[i + 1] ?? []).map((value, round) => value / (times[0]?.[round] as number))
    return { what, ours, baseline: smallest, ratio: spread(ratios) }
  })
  const { median } = spread(slopes)
  const growth = judge({ what: `${what}, growth`, ours: { value: median, unit: 'exponent' } }, target)
  return { growth, perOperation }
}

/** Nanoseconds per operation of one run, or of several in a row behind one collection. */
async function time<A>(
  task: Task<A>,
  { collect = 'minor', clock = 'wall' }: Rounds,
  repeats = 1,
): Promise<number> {
  const input = (await task.prepare?.()) as A
  collectGarbage(collect)
  const now = () => (clock === 'wall' ? Number(process.hrtime.bigint()) : processorTime())
  const start = now()
  let result: unknown
  for (let n = 0; n < repeats; n++) {
    result = task.run(input)
    if (result instanceof Promise) await result
  }
  const nanoseconds = now() - start
  // Looked at after the clock, so that no run can be optimised away.
  if (result === neverReturned) throw new Error('unreachable')
  await task.finish?.(input)
  return nanoseconds / task.operations / repeats
}

const neverReturned = Symbol('never returned')

/** Nanoseconds that this process has used so far. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) * 1e3
}

function heapPerOperation({ make, count }: Maker): number {
  const kept: unknown[] = new Array(count).fill(undefined)
  const before = liveHeap()
  for (let i = 0; i < count; i++) kept[i] = make(i)
  const bytes = (liveHeap() - before) / count
  if (kept.length !== count) throw new Error('unreachable')
  return bytes
}

function liveHeap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

export function collectGarbage(type: 'major' | 'minor' = 'major'): void {
  if (globalThis.gc === undefined) {
    throw new Error('Benchmarks need node --expose-gc; start them with `npm run bench`.')
  }
  if (type === 'minor') globalThis.gc({ type: 'minor', execution: 'sync' })
  else globalThis.gc()
}

/** A line of two figures that were taken once each. */
export function compareFigures(what: string, ours: Figure, baseline: Figure, target?: Target): Line {
  const quotient = ours.value / baseline.value
  return judge({ what, ours, baseline, ratio: { median: quotient, low: quotient, high: quotient } }, target)
}

export function judge(line: Omit<Line, 'target' | 'met'>, target: Target | undefined): Line {
  if (target === undefined) return line
  const value = target.of === 'ratio' ? line.ratio?.median : line.ours.value
  if (value === undefined) throw new Error(`"${line.what}" has a target for a ratio and no baseline.`)
  if (target.least) return { ...line, target, met: value >= target.limit }
  return { ...line, target, met: target.inclusive ? value <= target.limit : value < target.limit }
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) }
}

function quantile(sorted: readonly number[], q: number): number {
  const position = (sorted.length - 1) * q
  const below = sorted[Math.floor(position)] ?? Number.NaN
  const above = sorted[Math.ceil(position)] ?? Number.NaN
  return below + (above - below) * (position % 1)
}

/** Of total time against size: time per operation grows with one power less. */
function slope(sizes: readonly number[], perOperation: readonly number[]): number {
  return exponent(
    sizes,
    perOperation.map((value, i) => value * (sizes[i] as number)),
  )
}

/** The power of the size that a total grows with. */
export function exponent(sizes: readonly number[], totals: readonly number[]): number {
  const x = sizes.map(Math.log)
  const y = totals.map(Math.log)
  const meanX = x.reduce((sum, value) => sum + value, 0) / x.length
  const meanY = y.reduce((sum, value) => sum + value, 0) / y.length
  let above = 0
  let below = 0
  for (const [i, value] of x.entries()) {
    above += (value - meanX) * ((y[i] as number) - meanY)
    below += (value - meanX) ** 2
  }
  return above / below
}
