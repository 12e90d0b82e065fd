// A call that needs a person parks the run. Somebody decides, in another process if need be, and the run goes on. Without a key the model is scripted.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Agent,
  type ApprovalAnswer,
  createRuntime,
  type OpenApproval,
  RathError,
  Session,
  tool,
} from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-example-'))
const open = () => createRuntime({ store: `sqlite:${join(folder, 'rath.db')}` })

type Bill = { to: string; euros: number }

const pay = tool({
  name: 'pay',
  description: 'Pays a bill.',
  input: {
    type: 'object',
    properties: { to: { type: 'string' }, euros: { type: 'number' } },
    required: ['to', 'euros'],
  },
  approval: ({ euros }) => euros > 10, // small ones need nobody
  run: ({ to, euros }: Bill) => `${euros} euros paid to ${to}`,
})
const bills: Bill[] = [
  { to: 'baker', euros: 5 },
  { to: 'mason', euros: 900 },
  { to: 'stranger', euros: 400 },
]
/** Answers by what it is shown, so that it does not matter which process asks. */
const script = scripted(({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? 'That is all.'
    : { toolCalls: bills.map(args => ({ name: 'pay', args })) },
)
const clerk = () =>
  new Agent('Pay every bill with a call of its own, all in one turn. What was refused stays so.', {
    name: 'clerk',
    model: modelOr(script),
    tools: [pay],
    builtins: false,
  })

/** Ada decides. `digest` makes sure that it is about what she was shown. */
function decide({ args, digest }: OpenApproval): ApprovalAnswer {
  const { to, euros } = args as Bill
  return to === 'stranger'
    ? { verdict: 'rejected', by: 'ada', reason: 'who is that?', digest }
    : { verdict: 'edited', by: 'ada', reason: 'half now', edit: { to, euros: euros / 2 }, digest }
}

// Monday: the run does what it may, asks for the rest, and parks. The process may end.
let end: unknown
{
  await using runtime = open()
  const task = `Pay the bills: ${JSON.stringify(bills)}`
  end = await runtime.run(clerk(), Session.fromUserMessage(task), { id: 'bills' }).catch(error => error)
}

while (end instanceof RathError && end.code === 'run-waiting') {
  // Wednesday: somebody decides.
  await using runtime = open()
  console.log(`${end.code}, the run is ${(await runtime.runs.get('bills')).status}`)
  for (const asked of end.data.approvals as unknown as OpenApproval[]) {
    console.log(`asked: ${asked.question} ${JSON.stringify(asked.args)}`)
    await runtime.decide('bills', asked.approval, decide(asked))
  }
  // Thursday: it goes on where it stood. The baker is not paid again.
  end = await runtime.resume('bills', clerk()).catch((error: unknown) => error)
}

if (!(end instanceof Session)) throw end
for (const chunk of end.chunks) {
  if (chunk.kind === 'tool-result') console.log(`${chunk.tool}: ${chunk.text}`)
  if (chunk.kind === 'approval' && chunk.verdict)
    console.log(`${chunk.verdict} by ${chunk.decidedBy}: ${chunk.reason}`)
}
await using runtime = open()
console.log(`the run is ${(await runtime.runs.get('bills')).status}: ${end.text}`)
process.on('exit', () => rmSync(folder, { recursive: true }))
