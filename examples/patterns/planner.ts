// A planner with workers: one agent writes the plan as data, workers do its parts side by side on branches, one agent joins the results.
// Without a key the models are scripted.
import { Agent, configure, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { z } from 'zod'
import { modelOr } from '../model.ts'

configure({ store: 'memory:' })

const Plan = z.object({ tasks: z.array(z.string()).min(2).max(5) })

const planner = new Agent('Split the work into two or three independent tasks of a few words each.', {
  name: 'planner',
  model: modelOr(scripted(['{"tasks":["List the risks","List the costs","List the dates"]}'])),
  output: Plan,
  builtins: false,
})

const worker = new Agent('Do the one task you are given. One sentence.', {
  name: 'worker',
  // Answers by what it was asked last, so that it does not matter which branch asks first.
  model: modelOr(
    scripted(({ messages }) => {
      const last = messages.at(-1)
      const task = last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : ''
      return `${task.replace('List the ', '')}: none worth naming`
    }),
  ),
  builtins: false,
})

const editor = new Agent('Join the results into one answer of one sentence.', {
  name: 'editor',
  model: modelOr(scripted(['The move has no risks, costs or dates worth naming.'])),
  builtins: false,
})

const planned = await planner(Session.fromUserMessage('Plan the move to the new office.'))
const { tasks } = Plan.parse(JSON.parse(planned.text))

const branches = planned.forks(tasks.map((_, i) => `task-${i + 1}`))
const done = await Promise.all(branches.map((branch, i) => worker(branch.user(tasks[i] as string))))
for (const branch of done) console.log(`${branch.branch}: ${branch.text}`)

const [first, ...others] = done
const joined = await editor((await (first as Session).merge(others)).user('Join the results.'))
console.log(`editor: ${joined.text}`)
