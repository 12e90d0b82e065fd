// Remembers a text, or says what it recalls, in the folder it is run in: node remember.ts MEMORY remember|recall TEXT
import { Agent } from '../../../src/flow/agent.ts'
import { configure } from '../../../src/run/runtime.ts'
import { scripted } from '../../../src/testing/scripted.ts'

const [memory = '', verb = '', text = ''] = process.argv.slice(2)
await using _runtime = configure({ store: 'memory:' })
await using agent = new Agent('Be brief.', { memory, model: scripted([]) })
if (verb === 'remember') await agent.remember(text)
else for (const hit of await agent.recall(text)) console.log(hit.text)
