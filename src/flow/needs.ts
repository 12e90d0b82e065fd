import type { Provider } from '../model/provider.ts'
import type { ResolvedModel } from '../model/resolve.ts'
import type { BudgetLimits } from '../run/budget.ts'
import type { Session } from '../session/session.ts'
import type { Tool } from '../tool/spec.ts'

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

/** What makes an agent the one it is: its instructions, whom it asks, what it remembers in. */
export interface AgentParam {
  /** The prompt, as a session of its own. */
  readonly session: Session
  /** The provider that it asks; the model itself where that was handed over as an object. */
  readonly provider: Provider | ResolvedModel
  /** Its memory store, where it has one. */
  readonly memory: unknown
}
