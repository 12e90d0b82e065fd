// A process dies in the middle of a run; another one goes on where it stood. Nothing is paid or sent twice.
// Without a key the models are scripted; the crash is real.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, createRuntime, effect, Session, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const says = (who: string, answer: string) =>
  modelOr(
    scripted(() => {
      console.log(`${who} is asked`)
      return answer
    }),
  )

export class Order extends Workflow {
  clerk = new Agent('Take the order: a lamp is 40 euros. One sentence.', {
    model: says('clerk', 'One lamp, 40 euros.'),
    builtins: false,
  })
  packer = new Agent('Pack what was ordered, and say how. One sentence.', {
    model: says('packer', 'Packed, with a bow.'),
    builtins: false,
  })

  async forward(session: Session) {
    session = await this.clerk(session)
    // Something of yours that touches the world: its outcome is written down before anything follows from it.
    const receipt = await effect('charge', { euros: 40 }, () => {
      console.log('40 euros are charged')
      return { receipt: 7 }
    })
    if (process.env.POWER_CUT) process.kill(process.pid, 'SIGKILL')
    return this.packer(session.user(`Paid, receipt ${receipt.receipt}. Pack it.`))
  }
}

// The file runs itself as the process that dies: then the store's folder is its argument.
const [, file = '', given] = process.argv
const folder = given ?? mkdtempSync(join(tmpdir(), 'openrath-example-'))
await using runtime = createRuntime({ store: `sqlite:${join(folder, 'rath.db')}` })

if (given !== undefined) {
  const module = { file, export: 'Order' }
  await runtime.run(new Order(), Session.fromUserMessage('A lamp, please.'), { id: 'order-1', module })
} else {
  const env = { ...process.env, POWER_CUT: 'now' }
  const { signal, stdout } = spawnSync(process.execPath, [file, folder], { env, encoding: 'utf8' })
  for (const line of stdout.trim().split('\n')) console.log(`first process: ${line}`)
  console.log(`first process: ended by ${signal}`)

  console.log(`the run is ${(await runtime.runs.get('order-1')).status}`)
  const out = await runtime.resume('order-1', new Order())
  console.log(`second process: ${out.text}`)
  const { status, paid } = await runtime.report('order-1')
  console.log(
    `the run is ${status}; both processes together did ${paid.calls} things: two answers, one charge`,
  )

  // Without a workflow it loads the code that the run names. This one is done, and gives what it made.
  console.log(`resumed again, the same session: ${(await runtime.resume('order-1')).id === out.id}`)
}
if (given === undefined) process.on('exit', () => rmSync(folder, { recursive: true }))
