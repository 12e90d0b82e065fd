import type { ResolvedModel } from '../model/resolve.ts'
import type { BudgetLimits } from '../run/budget.ts'
import type { Tool } from '../tool/spec.ts'
import type { AgentParam } from './agent-param.ts'

/** What one module needs for its work, as far as it can be told before it runs. Its children speak for themselves. */
export interface Needs {
  readonly model?: ResolvedModel
  /** Of an agent: what `namedAgents()` lists. */
  readonly agent?: AgentParam
  readonly tools?: readonly Tool[]
  readonly budget?: BudgetLimits
  /** Names of the memory stores it opens. */
  readonly memories?: readonly string[]
  /** Whether somebody decides calls that need a person. */
  readonly approves?: boolean
  /** What only running it will show, a sentence each. */
  readonly unknown?: readonly string[]
}
