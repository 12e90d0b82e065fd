import { configure, Parallel, Session, Workflow } from 'openrath'
import { openStore } from 'openrath/store'
import { type Bench, judge, measureGrowth, spread, type Task, timeOnce, valueBelow } from './harness.ts'

class Pass extends Workflow {
  forward(session: Session): Session {
    return session
  }
}

class Nest extends Workflow {
  readonly inner: Workflow

  constructor(inner: Workflow) {
    super()
    this.inner = inner
  }

  forward(session: Session) {
    return this.inner(session)
  }
}

const depth = 100

/** What a call costs that does nothing: workflows in workflows, and branches that hand back what they were given. */
export const bench: Bench = async report => {
  configure({ store: await openStore('memory:') })
  const session = Session.fromUserMessage('go')

  let nested: Workflow = new Pass()
  for (let level = 1; level < depth; level++) nested = new Nest(nested)
  const task: Task = { name: 'per level', operations: depth, run: () => nested(session) }
  const times: number[] = []
  for (let round = -200; round < 1_000; round++) {
    const { value } = await timeOnce(task)
    if (round >= 0) times.push(value)
  }
  const median = { value: spread(times).median, unit: 'ns', name: 'per level' } as const
  report(judge({ what: `an empty workflow nested ${depth} deep`, ours: median }, valueBelow(5_000)))

  const { growth, perOperation } = await measureGrowth(
    'Parallel over empty branches',
    [100, 1_000],
    size => {
      const wide = new Parallel(Array.from({ length: size }, () => new Pass()))
      return { name: `per branch, ${size}`, operations: size, run: () => wide(session) }
    },
    { target: valueBelow(1.15) },
  )
  for (const line of perOperation) report(line)
  report(growth)
}
