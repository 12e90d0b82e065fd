import type { RathError } from '../../src/base/errors.ts'
import { Agent, type AgentOptions } from '../../src/flow/agent.ts'
import type { RunEvent } from '../../src/run/event.ts'
import type { PendingSession } from '../../src/run/pending-session.ts'
import { configure } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'

/** A store of its own for a test file, behind the default runtime. */
export const store = await openStore('memory:')
configure({ store })

export const ask = (text = 'go'): Session => Session.fromUserMessage(text)

export function agentWith(script: Script, options: Omit<AgentOptions, 'model'> = {}) {
  const model = scripted(script)
  return {
    model,
    agent: new Agent('Be brief.', { model, builtins: false, retry: { baseMs: 0 }, ...options }),
  }
}

/** A tool that answers its arguments. */
export const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  effect: 'pure',
  run: ({ text }: { text: string }) => text,
})

export const callsEcho = (text: string) => ({ toolCalls: [{ name: 'echo', args: { text } }] })

export const kinds = (session: Session): string[] => session.chunks.map(chunk => chunk.kind)

export async function eventsOf(pending: PendingSession): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  try {
    for await (const event of pending) events.push(event)
  } catch {
    // The failure is looked at by awaiting the session itself.
  }
  return events
}

/** The error of a run, with the session it carries. */
export async function failureOf(pending: Promise<unknown>): Promise<RathError & { session: Session }> {
  return pending.then(
    () => {
      throw new Error('it did not fail')
    },
    error => error,
  )
}
