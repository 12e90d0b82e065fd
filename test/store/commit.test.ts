import { expect, test } from 'vitest'
import { RathError } from '../../src/base/errors.ts'
import { Committer } from '../../src/store/commit.ts'
import type { Rows, StoreDriver, Touched } from '../../src/store/driver.ts'

/** Nothing here looks at rows. */
const noRows = {} as Rows

/** A driver that only commits, and lets each transaction wait until it is told how to end. */
function slowDriver() {
  const transactions: { touched: Touched; end(error?: Error): void }[] = []
  const begun: (() => void)[] = []
  const driver: Pick<StoreDriver, 'commit'> = {
    async commit(touched, decide) {
      decide(noRows)
      await new Promise<void>((resolve, reject) => {
        transactions.push({ touched, end: error => (error ? reject(error) : resolve()) })
        begun.shift()?.()
      })
    },
  }
  /** The transaction of this number, once it has begun. */
  const transaction = async (n: number) => {
    while (transactions.length <= n) await new Promise<void>(resolve => begun.push(resolve))
    return transactions[n] as (typeof transactions)[number]
  }
  return { committer: new Committer(driver as StoreDriver), transaction, transactions }
}

const returns = <T>(value: T) => ({ decide: () => value })
const refuses = (text: string) => ({
  decide(): never {
    throw new RathError('session-conflict', text)
  },
})

test('operations of one turn share a transaction, and each gets its own answer', async () => {
  const { committer, transaction, transactions } = slowDriver()
  const results = [1, 2, 3].map(n => committer.submit({ sessions: [`s${n}`, 's'], ...returns(n) }))
  const { touched, end } = await transaction(0)
  expect([...touched.sessions]).toEqual(['s1', 's', 's2', 's3'])
  end()
  expect(await Promise.all(results)).toEqual([1, 2, 3])
  expect(transactions.length).toBe(1)
})

test('what is decided on a session that was just deleted begins a transaction of its own', async () => {
  const { committer, transaction, transactions } = slowDriver()
  const operations = [
    { sessions: ['a'], ...returns('put') },
    { sessions: ['a'], deletes: true, ...returns('deleted') },
    { sessions: ['b'], deletes: true, ...returns('deleted, too') },
    { sessions: ['c'], ...returns('other') },
    { sessions: ['a'], ...returns('put again') },
    { sessions: ['c'], ...returns('behind it') },
  ]
  const results = operations.map(each => committer.submit(each))
  const first = await transaction(0)
  expect([...first.touched.sessions]).toEqual(['a', 'b', 'c'])
  first.end()
  const second = await transaction(1)
  expect([...second.touched.sessions]).toEqual(['a', 'c'])
  second.end()
  expect(await Promise.all(results)).toEqual(operations.map(({ decide }) => decide()))
  expect(transactions.length).toBe(2)
})

test('nothing is acknowledged before its transaction has ended', async () => {
  const { committer, transaction } = slowDriver()
  const order: string[] = []
  const result = committer.submit(returns(1)).then(() => order.push('acknowledged'))
  const { end } = await transaction(0)
  await new Promise(resolve => setImmediate(resolve))
  order.push('durable')
  end()
  await result
  expect(order).toEqual(['durable', 'acknowledged'])
})

test('what arrives while a transaction runs shares the next', async () => {
  const { committer, transaction, transactions } = slowDriver()
  const first = committer.submit(returns('first'))
  const running = await transaction(0)
  const later = ['second', 'third'].map(name => committer.submit(returns(name)))
  running.end()
  const next = await transaction(1)
  expect(await first).toBe('first')
  next.end()
  expect(await Promise.all(later)).toEqual(['second', 'third'])
  expect(transactions.length).toBe(2)
})

test('one operation that is refused does not disturb its siblings', async () => {
  const { committer, transaction } = slowDriver()
  const results = Promise.allSettled(
    [returns(1), refuses('no'), returns(3)].map(each => committer.submit(each)),
  )
  ;(await transaction(0)).end()
  expect(await results).toMatchObject([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { message: 'no' } },
    { status: 'fulfilled', value: 3 },
  ])
})

test('a transaction that fails rejects all of its operations, and the next goes on', async () => {
  const { committer, transaction } = slowDriver()
  const results = Promise.allSettled([returns(1), returns(2)].map(each => committer.submit(each)))
  ;(await transaction(0)).end(new RathError('store-full', 'full'))
  for (const result of await results)
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'store-full' } })
  const next = committer.submit(returns('on'))
  ;(await transaction(1)).end()
  expect(await next).toBe('on')
})

test('an operation that counts on collected chunks fails alone', async () => {
  const { committer, transaction } = slowDriver()
  const gone = new RathError('chunk-missing', 'gone')
  const results = Promise.allSettled([returns(1), returns(2)].map(each => committer.submit(each)))
  ;(await transaction(0)).end(gone)
  ;(await transaction(1)).end()
  ;(await transaction(2)).end(gone)
  expect(await results).toMatchObject([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { code: 'chunk-missing' } },
  ])
})

test('closing waits for what was accepted and refuses what comes after', async () => {
  const { committer, transaction } = slowDriver()
  const order: string[] = []
  const accepted = committer.submit(returns(1)).then(() => order.push('accepted'))
  const closed = committer.close().then(() => order.push('closed'))
  await expect(committer.submit(returns(2))).rejects.toMatchObject({ code: 'store-closed' })
  ;(await transaction(0)).end()
  await Promise.all([accepted, closed])
  expect(order).toEqual(['accepted', 'closed'])
})

/** A driver that is done at once; with `waits: false` one that never waits. */
function quickDriver({ waits = true } = {}) {
  const sizes: number[] = []
  const driver: Pick<StoreDriver, 'commit' | 'neverWaits'> = {
    neverWaits: !waits,
    commit({ sessions }, decide) {
      sizes.push([...sessions].length)
      decide(noRows)
      return undefined
    },
  }
  return { committer: new Committer(driver as StoreDriver), sizes }
}

test('an operation that is alone does not wait for the turn of the event loop to end', async () => {
  const { committer } = quickDriver()
  const order: string[] = []
  const turn = new Promise<void>(resolve =>
    setImmediate(() => {
      order.push('turn')
      resolve()
    }),
  )
  await committer.submit(returns(1)).then(() => order.push('alone'))
  await turn
  expect(order).toEqual(['alone', 'turn'])
})

test('operations asked for together share a transaction also when the one before was alone', async () => {
  const { committer, sizes } = quickDriver()
  const all = (...names: string[]) =>
    Promise.all(names.map(name => committer.submit({ sessions: [name], ...returns(name) })))
  await all('a')
  await all('b', 'c', 'd')
  await all('e', 'f')
  await all('g')
  expect(sizes).toEqual([1, 3, 2, 1])
})

test('a writer that awaits each operation lets the event loop go on', async () => {
  const { committer } = quickDriver()
  let turned = false
  setImmediate(() => {
    turned = true
  })
  for (let i = 0; i < 1_000_000 && !turned; i++) await committer.submit(returns(1))
  expect(turned).toBe(true)
})

const nothing = { decide: () => {} }

test('what a driver that never waits writes goes behind what was accepted before, and is done when it returns', async () => {
  const { committer } = quickDriver({ waits: false })
  const order: string[] = []
  const says = (text: string) => ({ decide: () => void order.push(text) })
  const before = committer.submit(says('before'))
  committer.write(says('first'), 'a')
  expect(() => committer.write(refuses('no'), 'a')).toThrow('no')
  committer.write(says('last'), 'b')
  expect(order).toEqual(['before', 'first', 'last'])
  await before
})

test('a writer that never waits is told to pause when the turn of the event loop gets long', async () => {
  const { committer } = quickDriver({ waits: false })
  let turned = false
  setImmediate(() => {
    turned = true
  })
  for (let i = 0; i < 10_000_000 && !turned; i++) {
    const pause = committer.write(nothing, 'a')
    if (pause) await pause
  }
  expect(turned).toBe(true)
})

test('a writer that has been alone is done at once, and one among others shares their transaction', async () => {
  const { committer, sizes } = quickDriver()
  const write = (writer: string) => committer.write({ ...nothing, sessions: [writer] }, writer)
  const all = (...writers: string[]) => Promise.all(writers.map(writer => write(writer)))
  expect(write('a')).toBeInstanceOf(Promise)
  // Where the turn has taken long, a writer pauses, and it is done at once in one of the next.
  let writing = write('a')
  for (let turn = 0; turn < 1000 && writing; turn++) {
    await writing
    await new Promise(resolve => setImmediate(resolve))
    writing = write('a')
  }
  expect(writing).toBeUndefined()
  sizes.length = 0
  await all('b', 'c', 'a')
  await all('a', 'b', 'c')
  expect(sizes).toEqual([3, 3])
})

test('what arrives while the transaction of a lone writer runs waits for it', async () => {
  const { committer, transaction } = slowDriver()
  const write = () => committer.write(nothing, 'a')
  const first = write()
  ;(await transaction(0)).end()
  await first
  await new Promise(resolve => setImmediate(resolve))
  const second = write()
  const { end } = await transaction(1)
  const third = committer.submit(returns('third'))
  const closed = committer.close()
  end()
  await second
  ;(await transaction(2)).end()
  expect(await third).toBe('third')
  await closed
})

test('what is thrown and is not a refusal fails the whole transaction', async () => {
  const { committer } = quickDriver()
  const breaks = {
    decide(): never {
      throw new Error('the disk')
    },
  }
  const results = await Promise.allSettled([returns(1), breaks].map(each => committer.submit(each)))
  expect(results).toMatchObject([
    { status: 'rejected', reason: { message: 'the disk' } },
    { status: 'rejected', reason: { message: 'the disk' } },
  ])
})

test('a driver that throws at once rejects its operations, and the next goes on', async () => {
  const answers = [new RathError('store-full', 'full'), undefined]
  const driver: Pick<StoreDriver, 'commit'> = {
    commit(_, decide) {
      const error = answers.shift()
      if (error) throw error
      decide(noRows)
      return undefined
    },
  }
  const committer = new Committer(driver as StoreDriver)
  await expect(committer.submit(returns(1))).rejects.toMatchObject({ code: 'store-full' })
  expect(await committer.submit(returns(2))).toBe(2)
  await committer.close()
})
