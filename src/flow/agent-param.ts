import type { Provider } from '../model/provider.ts'
import type { ResolvedModel } from '../model/resolve.ts'
import type { Session } from '../session/session.ts'

/** What makes an agent the one it is: its instructions, whom it asks, what it remembers in. */
export interface AgentParam {
  /** The prompt, as a session of its own. */
  readonly session: Session
  /** The provider that it asks; the model itself where that was handed over as an object. */
  readonly provider: Provider | ResolvedModel
  /** Its memory store, where it has one. */
  readonly memory: unknown
}
