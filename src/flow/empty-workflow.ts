import type { Session } from '../session/session.ts'
import type { Needs } from './needs.ts'
import { Workflow } from './workflow.ts'

/** Returns its session as it is: what a Selector gives when nothing fits, and a layer that stands in for one to come. */
export class EmptyWorkflow extends Workflow {
  override description = 'Does nothing.'

  /** Nothing, and nothing about it is unknown. */
  override needs(): Needs {
    return {}
  }

  forward(session: Session): Session {
    return session
  }
}
