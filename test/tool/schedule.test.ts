import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  apart,
  type Claim,
  claimOf,
  dependencies,
  normalizeResource,
  runSteps,
  type Step,
} from '../../src/tool/schedule.ts'
import { simple } from './make.ts'

const claim: fc.Arbitrary<Claim> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      resources: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd')),
      alone: fc.constant(false),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ resources: [], alone: true }) },
  { weight: 1, arbitrary: fc.constant(apart) },
)
const claims = fc.array(claim, { maxLength: 40 })

/** The rule as it is written down, without any cleverness. */
function mustWait(earlier: Claim, later: Claim): boolean {
  if (earlier.apart || later.apart) return false
  return earlier.alone || later.alone || earlier.resources.some(name => later.resources.includes(name))
}

/** Which of the earlier ones a step waits for, directly or through others. */
function reach(direct: readonly (readonly number[])[]): Set<number>[] {
  const all: Set<number>[] = []
  for (const earlier of direct) {
    all.push(new Set(earlier.flatMap(index => [index, ...(all[index] as Set<number>)])))
  }
  return all
}

test('a step waits for every earlier one that it must not overlap, and everyone between is in order', () => {
  fc.assert(
    fc.property(claims, given => {
      const reached = reach(dependencies(given))
      for (const [later, one] of given.entries()) {
        for (let earlier = 0; earlier < later; earlier++) {
          if (mustWait(given[earlier] as Claim, one)) expect(reached[later]?.has(earlier)).toBe(true)
        }
      }
    }),
  )
})

test('a step waits for nobody else: what is unrelated stays free', () => {
  // Related means: reachable over pairs that must wait for each other.
  fc.assert(
    fc.property(claims, given => {
      const naive = given.map((one, later) =>
        given.slice(0, later).flatMap((other, earlier) => (mustWait(other, one) ? [earlier] : [])),
      )
      expect(reach(dependencies(given))).toEqual(reach(naive))
    }),
  )
})

test('any claims in any order of completion: nothing lost, nothing twice, no overlap, limit kept, order kept', async () => {
  await fc.assert(
    fc.asyncProperty(
      claims,
      fc.integer({ min: 1, max: 5 }),
      fc.scheduler(),
      async (given, limit, scheduler) => {
        const started: number[] = []
        const ended: number[] = []
        const running = new Set<number>()
        const steps = given.map(
          (one, index): Step => ({
            claim: one,
            ready: scheduler.schedule(Promise.resolve(false)),
            run: async () => {
              for (const other of running) expect(mustWait(given[other] as Claim, one)).toBe(false)
              started.push(index)
              running.add(index)
              expect(running.size).toBeLessThanOrEqual(limit)
              await scheduler.schedule(Promise.resolve())
              running.delete(index)
              ended.push(index)
            },
          }),
        )
        await scheduler.waitFor(runSteps(steps, limit))
        expect(ended.toSorted((a, b) => a - b)).toEqual(given.map((_, index) => index))
        for (const [place, later] of started.entries()) {
          for (const other of started.slice(place + 1)) {
            if (other < later) expect(mustWait(given[other] as Claim, given[later] as Claim)).toBe(false)
          }
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('a step that rejects takes those behind it with it, and no other', async () => {
  await fc.assert(
    fc.asyncProperty(claims, fc.nat(), fc.scheduler(), async (given, pick, scheduler) => {
      fc.pre(given.length > 0)
      const failing = pick % given.length
      const ran = new Set<number>()
      const steps = given.map(
        (one, index): Step => ({
          claim: one,
          ready: scheduler.schedule(Promise.resolve(false)),
          run: async () => {
            await scheduler.schedule(Promise.resolve())
            ran.add(index)
            if (index === failing) throw new Error('no')
          },
        }),
      )
      const failure = runSteps(steps, 3).then(
        () => 'resolved',
        error => error.message,
      )
      expect(await scheduler.waitFor(failure)).toBe('no')
      const reached = reach(dependencies(given))
      const expected = given.flatMap((_, index) => (reached[index]?.has(failing) ? [] : [index]))
      expect([...ran].toSorted((a, b) => a - b)).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})

test('a step whose claim changed runs alone', async () => {
  await fc.assert(
    fc.asyncProperty(claims, fc.array(fc.boolean()), fc.scheduler(), async (given, changes, scheduler) => {
      const running = new Set<number>()
      let ran = 0
      const steps = given.map(
        (one, index): Step => ({
          claim: one,
          ready: scheduler.schedule(Promise.resolve(changes[index] === true)),
          run: async () => {
            const isAlone = (of: number) => changes[of] === true
            if (isAlone(index)) expect(running.size).toBe(0)
            expect([...running].some(isAlone)).toBe(false)
            running.add(index)
            await scheduler.schedule(Promise.resolve())
            running.delete(index)
            ran++
          },
        }),
      )
      await scheduler.waitFor(runSteps(steps, 4))
      expect(ran).toBe(given.length)
    }),
    { numRuns: 200 },
  )
})

test('ten thousand claims are planned in linear time', () => {
  const many = (count: number) =>
    Array.from(
      { length: count },
      (_, i): Claim => ({ resources: [`r${i % 100}`, `s${i % 7}`], alone: i % 50 === 0 }),
    )
  const edges = dependencies(many(10_000)).flat().length
  expect(edges).toBeLessThan(40_000)
  const free = dependencies(Array.from({ length: 10_000 }, (_, i) => ({ resources: [], alone: i % 2 === 1 })))
  expect(free.flat().length).toBeLessThan(20_000)
})

test('one file has one name, however it is written', () => {
  for (const name of ['a.txt', './a.txt', 'b/../a.txt', './/a.txt', 'a.txt/', 'x/y/../../a.txt']) {
    expect(normalizeResource(name)).toBe('a.txt')
  }
  expect(normalizeResource('/a/../../b')).toBe('/b')
  expect(normalizeResource('../a')).toBe('../a')
  expect(normalizeResource('a/../../b')).toBe('../b')
  expect(normalizeResource('')).toBe('.')
  expect(normalizeResource('./')).toBe('.')
  expect(normalizeResource('https://host/a/../b')).toBe('https://host/a/../b')
  expect(normalizeResource('db:users')).toBe('db:users')
})

test('what may touch the world and names no resource runs alone; what only looks runs freely', () => {
  const alone = (effect: 'pure' | 'read' | 'workspace' | 'idempotent' | 'external', resource?: string[]) =>
    claimOf(
      simple('t', () => 1, { effect, ...(resource && { resource: () => resource }) }),
      {},
    ).alone
  expect([alone('workspace'), alone('external')]).toEqual([true, true])
  expect([alone('pure'), alone('read'), alone('idempotent')]).toEqual([false, false, false])
  expect([alone('workspace', ['a']), alone('external', ['a'])]).toEqual([false, false])
  expect(alone('external', [])).toBe(true)
})
