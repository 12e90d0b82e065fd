// Prints docs/format/example.jsonl, the worked example of the session format. It follows the specification and imports
// nothing of openrath, so that library and specification check each other:
//   node scripts/format-example.ts > docs/format/example.jsonl
import { createHash } from 'node:crypto'

type Value = null | boolean | number | string | Value[] | { [name: string]: Value }

function canonical(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map(name => `${JSON.stringify(name)}:${canonical(value[name] as Value)}`)
  return `{${members.join(',')}}`
}

const digest = (value: Value) => createHash('sha256').update(canonical(value)).digest('hex')

const at = Date.UTC(2026, 0, 1)
const branch = 'careful'
const session = '019b76da-afd0-7000-8000-000000000002'
const parent = '019b76da-a800-7000-8000-000000000001'

const chunks: { [name: string]: Value }[] = [
  { kind: 'user', at, content: [{ type: 'text', text: 'What is 2 + 2?' }] },
  {
    kind: 'assistant',
    at: at + 1000,
    branch,
    by: 'Tutor',
    content: [
      { type: 'text', text: 'Let me see.' },
      { type: 'tool-call', id: 'call-7f3a', name: 'add', args: { a: 2, b: 2 } },
    ],
    usage: { inputTokens: 21, outputTokens: 9, cachedInputTokens: 0, reasoningTokens: 0, totalTokens: 30 },
  },
  {
    kind: 'tool-result',
    at: at + 1200,
    branch,
    callId: 'call-7f3a',
    tool: 'add',
    args: { a: 2, b: 2 },
    outcome: { kind: 'value', value: 4 },
    durationMs: 3,
  },
  { kind: 'note', at: at + 1300, branch, name: 'checked', data: { twice: true } },
  { kind: 'assistant', at: at + 2000, branch, by: 'Tutor', content: [{ type: 'text', text: 'Four.' }] },
]

const print = (record: Value) => console.log(JSON.stringify(record))
const seal = (record: { [name: string]: Value }) => print({ ...record, digest: digest(record) })

const lineage = { at: at + 2000, extras: {}, operation: 'append', parents: [parent] }
seal({ type: 'session', format: 'openrath/session', version: 1, id: session, branch, lineage })
let previous: string | null = null
for (const chunk of chunks) {
  previous = digest([previous, chunk])
  print({ type: 'chunk', id: previous, chunk: JSON.parse(canonical(chunk)) })
}
seal({ type: 'end', session, head: previous, length: chunks.length })
