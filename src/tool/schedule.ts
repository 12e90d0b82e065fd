import type { Json } from '../base/json.ts'
import type { Tool } from './spec.ts'

/** What a call keeps others away from while it runs. */
export interface Claim {
  /** Calls that share one of these run one after the other, in the order asked. */
  readonly resources: readonly string[]
  /** After everything before it, before everything behind it. */
  readonly alone: boolean
  /** Sees and changes nothing: it waits for nobody, and nobody for it. */
  readonly apart?: boolean
}

export interface Step {
  readonly claim: Claim
  /** Resolves when the step may start, as far as it is concerned; true when its claim no longer holds: it then runs alone, after all before it. None: at once. */
  readonly ready?: Promise<boolean> | undefined
  run(): Promise<void>
}

export function claimOf(tool: Tool, args: Json): Claim {
  const named = tool.resource?.(args)
  const names = named === undefined ? [] : typeof named === 'string' ? [named] : named
  const resources = [...new Set(names.map(normalizeResource))]
  const touches = tool.effect === 'workspace' || tool.effect === 'external'
  if (tool.effect === 'pure' && resources.length === 0) return apart
  return { resources, alone: resources.length === 0 && touches }
}

/** Of a call that no other can disturb. */
export const apart: Claim = Object.freeze({ resources: [], alone: false, apart: true })

export function sameClaim(one: Claim, other: Claim): boolean {
  return one.alone === other.alone && one.resources.join('\n') === other.resources.join('\n')
}

/** `a.txt`, `./a.txt` and `b/../a.txt` are one resource. Names with a scheme, `db:users`, stay as they are. */
export function normalizeResource(name: string): string {
  if (/^[a-zA-Z][\w+.-]+:/.test(name)) return name
  const isAbsolute = name.startsWith('/')
  const kept: string[] = []
  for (const segment of name.split('/')) {
    if (segment === '' || segment === '.') continue
    if (segment !== '..') kept.push(segment)
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop()
    else if (!isAbsolute) kept.push('..')
  }
  return (isAbsolute ? '/' : '') + kept.join('/') || '.'
}

/** For each claim, the earlier ones that must end before it starts. Linear in claims and resources: what follows from another wait is left out. */
export function dependencies(claims: readonly Claim[]): number[][] {
  let barrier: number | undefined
  let behindBarrier: number[] = []
  let lastOn = new Map<string, number>()
  return claims.map(({ resources, alone, apart }, index) => {
    if (apart) return []
    const afterBarrier = barrier === undefined ? [] : [barrier]
    if (alone) {
      const waitsFor = behindBarrier.length > 0 ? behindBarrier : afterBarrier
      barrier = index
      behindBarrier = []
      lastOn = new Map()
      return waitsFor
    }
    const waitsFor = new Set<number>()
    for (const resource of resources) {
      const last = lastOn.get(resource)
      if (last !== undefined) waitsFor.add(last)
      lastOn.set(resource, index)
    }
    behindBarrier.push(index)
    return waitsFor.size > 0 ? [...waitsFor] : afterBarrier
  })
}

const unchanged = Promise.resolve(false)

/**
 * Runs steps as their claims allow, at most `limit` at a time. A step that rejects takes those that wait for it with it and
 * disturbs no other; the promise rejects with the first such error once everything else has ended.
 */
export function runSteps(steps: readonly Step[], limit: number): Promise<void> {
  const [only] = steps
  // Most turns have one call, and nothing to arrange.
  if (only && steps.length === 1) return only.ready ? only.ready.then(() => only.run()) : only.run()
  return new Promise((resolve, reject) => {
    const waitsFor = dependencies(steps.map(step => step.claim))
    const dependents = steps.map((): number[] => [])
    for (const [index, earlier] of waitsFor.entries()) {
      for (const other of earlier) (dependents[other] as number[]).push(index)
    }
    // One more than its dependencies: the step itself has to be ready too.
    const missing = waitsFor.map(earlier => earlier.length + 1)
    const changed = new Set<number>()
    const queue: number[] = []
    const errors: unknown[] = []
    const settled = new Set<number>()
    let next = 0
    let running = 0
    let isAlone = false

    const settle = (index: number) => {
      if (settled.has(index)) return
      settled.add(index)
      if (settled.size < steps.length) return
      if (errors.length > 0) reject(errors[0])
      else resolve()
    }
    const arrive = (index: number) => {
      missing[index] = (missing[index] as number) - 1
      if (missing[index] === 0) queue.push(index)
    }
    const giveUp = (index: number, error: unknown) => {
      errors.push(error)
      const lost = [index]
      for (let here = lost.pop(); here !== undefined; here = lost.pop()) {
        if (settled.has(here)) continue
        settle(here)
        lost.push(...(dependents[here] as number[]))
      }
    }
    const start = (index: number) => {
      const end = () => {
        running--
        isAlone = false
      }
      ;(steps[index] as Step).run().then(
        () => {
          end()
          settle(index)
          for (const dependent of dependents[index] as number[]) arrive(dependent)
          pump()
        },
        error => {
          end()
          giveUp(index, error)
          pump()
        },
      )
    }
    const pump = () => {
      while (next < queue.length && running < limit && !isAlone) {
        const index = queue[next] as number
        if (changed.has(index)) {
          if (running > 0) return
          isAlone = true
        }
        next++
        running++
        start(index)
      }
    }

    if (steps.length === 0) resolve()
    for (const [index, step] of steps.entries()) {
      const ready = step.ready ?? unchanged
      ready.then(
        isChanged => {
          if (isChanged) {
            changed.add(index)
            // What it shares with those before it is not known here, so it comes after all of them.
            for (let earlier = 0; earlier < index; earlier++) {
              if (settled.has(earlier)) continue
              ;(dependents[earlier] as number[]).push(index)
              missing[index] = (missing[index] as number) + 1
            }
          }
          arrive(index)
          pump()
        },
        error => {
          giveUp(index, error)
          pump()
        },
      )
    }
  })
}
