// A call that needs a person parks the run. Somebody decides, in another process if need be, and the run goes on. Scripted model.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, createRuntime, type OpenApproval, RathError, Session, tool } from 'openrath'
import { scripted } from 'openrath/testing'

const folder = mkdtempSync(join(tmpdir(), 'openrath-example-'))
const open = () => createRuntime({ store: `sqlite:${join(folder, 'rath.db')}` })

const pay = tool({
  name: 'pay',
  description: 'Pays a bill.',
  input: {
    type: 'object',
    properties: { to: { type: 'string' }, euros: { type: 'number' } },
    required: ['to', 'euros'],
  },
  approval: ({ euros }) => euros > 10, // small ones need nobody
  run: ({ to, euros }: { to: string; euros: number }) => `${euros} euros paid to ${to}`,
})
const bills = [
  { to: 'baker', euros: 5 },
  { to: 'mason', euros: 900 },
  { to: 'stranger', euros: 400 },
]
/** Answers by what it is shown, so that it does not matter which process asks. */
const model = scripted(({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? 'That is all.'
    : { toolCalls: bills.map(args => ({ name: 'pay', args })) },
)
const clerk = () => new Agent('Pay what is due.', { name: 'clerk', model, tools: [pay], builtins: false })

// Monday: the run does what it may, asks for the rest, and parks. The process may end.
{
  await using runtime = open()
  const pending = runtime.run(clerk(), Session.fromUserMessage('Pay the bills.'), { id: 'bills' })
  const error = await pending.catch((thrown: unknown) => thrown)
  if (!(error instanceof RathError)) throw new Error('nobody was asked')
  console.log(`${error.code}, the run is ${(await runtime.runs.get('bills')).status}`)
  const asked = error.data.approvals as unknown as OpenApproval[]
  const about = (who: string) => asked.find(({ args }) => JSON.stringify(args).includes(who)) as OpenApproval
  for (const who of ['mason', 'stranger'])
    console.log(`asked: ${about(who).question} ${JSON.stringify(about(who).args)}`)

  // Wednesday: somebody decides. `digest` makes sure that it is about what was shown.
  const { approval, digest } = about('mason')
  const half = { to: 'mason', euros: 450 }
  const decided = { verdict: 'edited', by: 'ada', reason: 'half now', edit: half, digest } as const
  await runtime.decide('bills', approval, decided)
  await runtime.decide('bills', about('stranger').approval, {
    verdict: 'rejected',
    by: 'ada',
    reason: 'who is that?',
  })
}

// Thursday: it goes on where it stood. The baker is not paid again.
await using runtime = open()
const out = await runtime.resume('bills', clerk())
for (const chunk of out.chunks) {
  if (chunk.kind === 'tool-result') console.log(`${chunk.tool}: ${chunk.text}`)
  if (chunk.kind === 'approval' && chunk.verdict)
    console.log(`${chunk.verdict} by ${chunk.decidedBy}: ${chunk.reason}`)
}
console.log(`the run is ${(await runtime.runs.get('bills')).status}: ${out.text}`)
process.on('exit', () => rmSync(folder, { recursive: true }))
