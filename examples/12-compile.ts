// What a tree of agents needs and what is wrong with it, before a token is spent. Nothing is asked and nothing is loaded:
// a key in the environment changes the name of the model, and where its key was found.
import { Agent, Compressor, Selector, type Session, tool, Workflow } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

const model = modelOr(scripted([]))

const refund = tool({
  name: 'refund',
  description: 'Pays money back.',
  input: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
  approval: true,
  run: ({ amount }: { amount: number }) => `paid back ${amount}`,
})

class Shop extends Workflow {
  override description = 'Answers customers.'
  desk = new Selector({ model })
  clerk = new Agent('Sell things.', {
    description: 'Sells.',
    model,
    memory: 'local',
    builtins: ['read_workspace_file', 'run_shell_command'],
    budget: { tokens: 50_000, rounds: 20 },
  })
  // A mistake: there is no key for this model here.
  cashier = new Agent('Take money.', { model: 'azure/till', tools: [refund], builtins: false })
  minutes = new Compressor('Keep what was sold.', { model })

  async forward(session: Session) {
    const next = await this.desk(session, this.clerk, this.cashier)
    return this.minutes(next(session))
  }
}

const shop = new Shop()
console.log(String(shop))

const compiled = shop.compile()
const { models, tools, memories, budgets } = compiled.manifest
for (const { id, usedBy, credentials } of models)
  console.log(`model ${id}: ${credentials.status}, used by ${usedBy}`)
for (const { name, effect, approval } of tools)
  console.log(`tool ${name}: ${effect}, asks a person ${approval}`)
console.log(`memory ${memories[0]?.name}, budget ${JSON.stringify(budgets[0]?.limits)}`)

// Every problem at once, each with the part it is about.
for (const { path, code } of compiled.validate()) console.log(`problem: ${path} ${code}`)

// One call gives the whole tree another model.
console.log(
  `with another model: ${
    shop
      .to(scripted([], { id: 'scripted/shop' }))
      .compile()
      .validate().length
  } problems`,
)
