import { Agent } from '../../../src/flow/agent.ts'
import { Parallel } from '../../../src/flow/containers.ts'
import { Workflow } from '../../../src/flow/workflow.ts'
import { effect, type ForwardContext } from '../../../src/run/forward.ts'
import type { Session } from '../../../src/session/session.ts'
import { scripted } from '../../../src/testing/scripted.ts'
import { tool } from '../../../src/tool/tool.ts'

/** What test/fixtures/run-v1.json is a record of. Its prompts, tools and calls are as they were then: do not edit it. */
export class Golden extends Workflow {
  readonly writer: Agent
  readonly critic: Agent

  constructor(isLive = false) {
    super()
    const model = (answers: Parameters<typeof scripted>[0]) => scripted(isLive ? answers : [])
    const clock = tool({
      name: 'clock',
      description: 'Tells the time.',
      input: { type: 'object', properties: { zone: { type: 'string' } }, additionalProperties: false },
      effect: 'read',
      run: () => '17:45',
    })
    const calls = { toolCalls: [{ name: 'clock', args: { zone: 'UTC' } }] }
    this.writer = new Agent('Write.', {
      model: model(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'It is late.' : calls)),
      tools: [clock],
      builtins: false,
    })
    this.critic = new Agent('Criticise.', { model: model(() => 'How late?'), builtins: false })
  }

  async forward(session: Session, context: ForwardContext) {
    const [one, two] = await Promise.all([this.critic(session), this.critic(session)])
    const at = await context.now()
    const out = await new Parallel({ a: this.writer, b: this.critic })(
      session.user(`${one.text} ${two.text} ${at}`),
    )
    return out.user(await effect('publish', { length: out.length }, () => 'published'))
  }
}
