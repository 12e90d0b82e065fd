import fc from 'fast-check'

/** A random program: what a workflow may do with sessions. Every step has a number of its own. */
export type Plan =
  | { readonly kind: 'say'; readonly n: number }
  /** An agent that pays with an external tool; a person has to approve when `asks`. */
  | { readonly kind: 'pay'; readonly n: number; readonly asks: boolean }
  /** An agent that calls other agents as tools, side by side in one turn. */
  | { readonly kind: 'boss'; readonly n: number; readonly parts: readonly Plan[] }
  /** An effect of the workflow's own. */
  | { readonly kind: 'mail'; readonly n: number }
  /** An id drawn by the workflow and told to an agent. */
  | { readonly kind: 'draw'; readonly n: number }
  | { readonly kind: 'remember'; readonly n: number }
  | { readonly kind: 'write'; readonly n: number }
  | { readonly kind: 'nested'; readonly n: number; readonly part: Plan }
  /** Unlabelled forks worked on by Promise.all, merged. */
  | { readonly kind: 'forks'; readonly n: number; readonly parts: readonly Plan[] }
  /** One agent on several equal forks. */
  | { readonly kind: 'samples'; readonly n: number; readonly count: number; readonly part: Plan }
  | { readonly kind: 'parallel'; readonly n: number; readonly parts: readonly Plan[] }
  | { readonly kind: 'map'; readonly n: number; readonly count: number; readonly part: Plan }
  | { readonly kind: 'then'; readonly n: number; readonly parts: readonly Plan[] }

type Bare<P> = P extends { n: number } ? Omit<P, 'n' | 'parts' | 'part'> & BareParts<P> : never
type BareParts<P> = (P extends { parts: unknown } ? { parts: readonly BarePlan[] } : object) &
  (P extends { part: unknown } ? { part: BarePlan } : object)
type BarePlan = Bare<Plan>

/** `withFiles`: some steps write files of the workspace. */
export function plans({ withFiles }: { readonly withFiles: boolean }): fc.Arbitrary<Plan> {
  const { bare } = fc.letrec<{ bare: BarePlan; agent: BarePlan }>(tie => {
    const parts = fc.array(tie('bare'), { minLength: 2, maxLength: 3 })
    const leaf = <K extends 'say' | 'mail' | 'draw' | 'remember' | 'write'>(kind: K) => fc.constant({ kind })
    const pay = fc.record({ kind: fc.constant('pay' as const), asks: fc.boolean() })
    const boss = fc.record({
      kind: fc.constant('boss' as const),
      parts: fc.array(tie('agent'), { minLength: 1, maxLength: 2 }),
    })
    const several = (kind: 'samples' | 'map') =>
      fc.record({ kind: fc.constant(kind), count: fc.integer({ min: 2, max: 3 }), part: tie('agent') })
    return {
      bare: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        leaf('say'),
        pay,
        leaf('mail'),
        leaf('draw'),
        leaf('remember'),
        ...(withFiles ? [leaf('write')] : []),
        boss,
        several('samples'),
        several('map'),
        fc.record({ kind: fc.constant('nested' as const), part: tie('bare') }),
        ...(['forks', 'parallel', 'then'] as const).map(kind =>
          fc.record({ kind: fc.constant(kind), parts }),
        ),
      ),
      agent: fc.oneof({ maxDepth: 2 }, leaf('say'), pay, boss),
    }
  })
  return bare.map(numbered)
}

function numbered(bare: BarePlan): Plan {
  let next = 1
  const number = (plan: BarePlan): Plan => {
    const n = next++
    return {
      ...plan,
      n,
      ...('parts' in plan && { parts: plan.parts.map(number) }),
      ...('part' in plan && { part: number(plan.part) }),
    } as Plan
  }
  return number(bare)
}

/** What an undisturbed run of a plan does, worked out from the plan alone. */
export interface Expected {
  /** Model answers, each by the step that asked. */
  readonly answers: number[]
  /** Payments and mails, by step. */
  readonly paid: number[]
  readonly mailed: number[]
  /** Files that are there in the end. */
  readonly written: number[]
  readonly approvals: number
  readonly tools: number
  /** Sessions of agents behind tools. */
  readonly agents: number
}

export function expectedOf(plan: Plan, times = 1): Expected {
  const none = (): number[] => []
  const expected = {
    answers: none(),
    paid: none(),
    mailed: none(),
    written: none(),
    approvals: 0,
    tools: 0,
    agents: 0,
  }
  const several = (step: number, count: number) => Array<number>(count).fill(step)
  const add = (part: Plan, count: number): void => {
    const { n } = part
    switch (part.kind) {
      case 'say':
      case 'draw':
      case 'remember':
        expected.answers.push(...several(n, count))
        break
      case 'write':
        expected.answers.push(...several(n, 2 * count))
        expected.written.push(n)
        expected.tools += count
        break
      case 'pay':
        expected.answers.push(...several(n, 2 * count))
        expected.paid.push(...several(n, count))
        expected.tools += count
        if (part.asks) expected.approvals += count
        break
      case 'boss':
        expected.answers.push(...several(n, 2 * count))
        expected.tools += part.parts.length * count
        expected.agents += part.parts.length * count
        for (const inner of part.parts) add(inner, count)
        break
      case 'mail':
        expected.mailed.push(...several(n, count))
        break
      case 'nested':
        add(part.part, count)
        break
      case 'samples':
      case 'map':
        add(part.part, count * part.count)
        break
      default:
        for (const inner of part.parts) add(inner, count)
    }
  }
  add(plan, times)
  return expected
}

/** Steps whose failing model fails the run. That of an agent behind a tool does not: its caller reads of it and goes on. */
export function failableIn(plan: Plan): number[] {
  if (plan.kind === 'boss') return [plan.n]
  const parts = 'parts' in plan ? plan.parts : 'part' in plan ? [plan.part] : []
  return [plan.n, ...parts.flatMap(failableIn)]
}

/** Different for each step, so that a sum that leaves one out, or counts one twice, is another sum. */
export const tokensOf = (step: number): number => 1000 + 2 ** (step % 20)

export const tokensIn = (answers: readonly number[]): number =>
  answers.reduce((sum, step) => sum + tokensOf(step), 0)
