import { currentContext } from '../run/context.ts'
import { onLane } from '../session/lineage.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import { cutShort } from '../session/summary.ts'
import type { Effect, Tool } from '../tool/spec.ts'
import { tool } from '../tool/tool.ts'
import { ToolError } from '../tool/tool-error.ts'
import type { Workflow } from './workflow.ts'

export interface AgentToolOptions {
  readonly name: string
  readonly description: string
  /** What a call of it does to the world, its own tools included; `external` by default, so that calls run one at a time. */
  readonly effect?: Effect
  /** Milliseconds a call may take. */
  readonly timeout?: number
}

/** The agent behind a tool that was made of one. */
const agentOf = new WeakMap<Tool, Workflow>()

export function agentBehind(tool: Tool): Workflow | undefined {
  return agentOf.get(tool)
}

/** An agent as a tool of another: it works on a session of its own and its last text is the result. */
export function agentTool(agent: Workflow, { name, description, effect, timeout }: AgentToolOptions): Tool {
  const made = tool({
    name,
    description,
    ...(effect && { effect }),
    ...(timeout !== undefined && { timeout }),
    input: {
      type: 'object',
      properties: {
        request: { type: 'string', description: 'What to do, with everything needed to do it.' },
      },
      required: ['request'],
      additionalProperties: false,
    },
    run: async ({ request }: { request: string }, { signal, session }) => {
      const placement = session.placement
      const context = currentContext()
      const asked = Session.fromUserMessage(request)
      const own = placement ? besides(asked.to(placement.backend, placement.spec), session) : asked
      if (placement) context?.runtime.places.share(own, session)
      const out = await agent(own, { signal })
      if (placement && context?.run.followsFiles)
        await context.runtime.places.catchUp({ session: out, run: context.runId, signal })
      const stop = cutShort(valueFrom(out).tip)
      if (stop) throw new ToolError('threw', `${name} did not finish: ${stop.message}`)
      return out.text
    },
  })
  const resumed = { ...made, resumable: true }
  agentOf.set(resumed, agent)
  return resumed
}

/** On the lane of another session: it works in the same files. */
function besides(session: Session, other: Session): Session {
  const value = valueFrom(session)
  return sessionOf({ ...value, lineage: onLane(value.lineage, other.lineage.lane) })
}
