// Tools of another program, over MCP: the official `server-everything`, started here and ended with everything it started. Without a key the model is scripted.
import { Agent, configure, mcpTools, Session } from 'openrath'
import { scripted } from 'openrath/testing'
import { modelOr } from './model.ts'

await using _runtime = configure({ store: 'memory:' })

// One connection for any number of calls. `npx` finds the server among this repository's packages.
await using server = await mcpTools(
  { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'], cwd: import.meta.dirname },
  {
    include: ['echo', 'get-sum', 'get-structured-content', 'trigger-long-running-operation'],
    // Every tool is `external` unless you say otherwise. These you know: they change nothing.
    effect: 'read',
  },
)
console.log(`connected: ${server.name}`)
for (const { name, description } of server.tools) console.log(`- ${name}: ${description}`)

const script = scripted([
  {
    toolCalls: [
      { name: 'get-sum', args: { a: 19, b: 23 } },
      { name: 'get-structured-content', args: { location: 'Chicago' } },
      { name: 'trigger-long-running-operation', args: { duration: 0.2, steps: 2 } },
      { name: 'echo', args: { massage: 'hello' } }, // a slip: it never reaches the server
    ],
  },
  'Done.',
])
const agent = new Agent('Use the tools, all in one turn.', {
  model: modelOr(script),
  tools: server.tools,
  builtins: false,
})

const task =
  'Add 19 and 23, look up the weather in Chicago, start a long-running operation of 0.2 seconds in 2 steps, and echo hello.'
const pending = agent(Session.fromUserMessage(task))
for await (const event of pending) {
  if (event.type === 'tool-progress') console.log(`progress: ${JSON.stringify(event.data)}`)
}

for (const chunk of (await pending).chunks) {
  if (chunk.kind === 'tool-result') console.log(`${chunk.tool} -> ${chunk.text}`)
}
