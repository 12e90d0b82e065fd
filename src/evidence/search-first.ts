export type Answer = 'pass' | 'fail' | 'skip'

export interface Search<T> {
  readonly every: boolean
  /** What is known of an item without asking. */
  known(item: T): Answer | undefined
}

export interface Found<T> {
  readonly result: 'found' | 'suspects' | 'passes' | 'fails-from-start'
  readonly first?: T
  readonly suspects: readonly T[]
  readonly others: readonly T[]
  readonly changes: 'never' | 'once' | 'several' | 'assumed'
}

/**
 * An item that fails right behind one that passes, in O(log items) questions, or all of them with `every`. The ends are asked first: the last must
 * fail and the first must pass. Items that cannot be told are stepped around.
 */
export async function firstFailing<T>(
  items: readonly T[],
  ask: (item: T) => Promise<Answer>,
  { every, known }: Search<T>,
): Promise<Found<T>> {
  const at = (index: number) => ask(items[index] as T)
  const end = items.length - 1
  const ending = await at(end)
  if (every) for (let i = 0; i < end; i++) await at(i)
  const summary = () => describe(items, known)
  if (ending === 'pass') return { result: 'passes', suspects: [], ...summary() }
  const beginning = await at(0)
  if (ending === 'skip' || beginning === 'skip')
    return { result: 'suspects', suspects: items.slice(1), ...summary() }
  if (beginning === 'fail') return { result: 'fails-from-start', suspects: [], ...summary() }
  const { low, high } = every ? earliest(items, known) : await narrow(at, 0, end)
  const first = items[high] as T
  const { changes, others } = summary()
  const rest = others.filter(item => item !== first)
  if (high - low > 1)
    return { result: 'suspects', suspects: items.slice(low + 1, high + 1), changes, others: rest }
  return { result: 'found', first, suspects: [], changes, others: rest }
}

/** Everything has been asked, the first passes and the last fails. */
function earliest<T>(items: readonly T[], known: (item: T) => Answer | undefined) {
  const high = items.findIndex(item => known(item) === 'fail')
  const low = items.slice(0, high).findLastIndex(item => known(item) === 'pass')
  return { low, high }
}

/** Closes in on a place where `low` passes and `high` fails, with nothing between them that can be told. */
async function narrow(at: (index: number) => Promise<Answer>, from: number, to: number) {
  let low = from
  let high = to
  const skipped = new Set<number>()
  for (;;) {
    const middle = nearest(low, high, skipped)
    if (middle === undefined) return { low, high }
    const answer = await at(middle)
    if (answer === 'skip') skipped.add(middle)
    else if (answer === 'pass') low = middle
    else high = middle
  }
}

/** The index nearest to the middle that was not skipped. */
function nearest(low: number, high: number, skipped: ReadonlySet<number>): number | undefined {
  const middle = Math.floor((low + high) / 2)
  for (let step = 0; step <= high - low; step++) {
    for (const index of [middle - step, middle + step]) {
      if (index > low && index < high && !skipped.has(index)) return index
    }
  }
  return undefined
}

/** What all that is known says: every place where a failing item stands behind a passing one, unknown ones left out. */
function describe<T>(
  items: readonly T[],
  known: (item: T) => Answer | undefined,
): Pick<Found<T>, 'changes' | 'others'> {
  const told = items.filter(item => known(item) === 'pass' || known(item) === 'fail')
  const others = told.filter((item, i) => {
    const before = told[i - 1]
    return before !== undefined && known(item) === 'fail' && known(before) === 'pass'
  })
  if (others.length > 1) return { others, changes: 'several' }
  if (told.length < items.length) return { others, changes: 'assumed' }
  return { others, changes: others.length === 1 ? 'once' : 'never' }
}
