/**
 * An MCP server over standard input and output, by hand, so that it can misbehave in ways that an SDK would not let it. What it
 * does is chosen by its first argument, and by the tool that is called.
 */
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [mode = 'tools', note] = process.argv.slice(2)
const send = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const object = { type: 'object' }
const text = (said: string) => ({ content: [{ type: 'text', text: said }] })

const tools: Record<string, object> = {
  echo: { inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } },
  crash: { inputSchema: object },
  hang: { inputSchema: object },
  fail: { inputSchema: object },
  environment: { inputSchema: object, annotations: { readOnlyHint: true } },
  add_tool: { inputSchema: object, annotations: { idempotentHint: true } },
  cancelled: { inputSchema: object },
  parts: { inputSchema: object },
  garbage: { inputSchema: object },
  big: { inputSchema: object },
  refuse: { inputSchema: object },
  'bad schema!': { inputSchema: { type: 'objct', properties: { a: { $ref: '#/nowhere' } } } },
  no_schema: {},
  hostile: { inputSchema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } } },
  liar: {
    inputSchema: object,
    outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  },
  silent_liar: { inputSchema: object, outputSchema: { type: 'object' } },
  honest: {
    inputSchema: object,
    outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  },
  flood: { inputSchema: object },
  lists: { inputSchema: object },
  bad_output: { inputSchema: object, outputSchema: { type: 'nothing' } },
}
const cancelled: unknown[] = []
let lists = 0

if (mode === 'exits') {
  process.stderr.write('cannot find my licence\n')
  process.exit(3)
}
if (mode === 'grandchild') {
  const child = spawn('sleep', ['600'], { stdio: 'inherit' })
  tools[`pid_${child.pid}`] = { inputSchema: object }
  if (note === 'stubborn') process.on('SIGTERM', () => {})
}
if (mode === 'clash') Object.assign(tools, { 'a b': { inputSchema: object }, 'a.b': { inputSchema: object } })
// Something to keep it alive when its input is closed.
if (note === 'stubborn') setInterval(() => {}, 1000)
// Says nothing; `once` begins to with its second start, which the file tells it of.
const isMute = mode === 'mute' || (mode === 'once' && existsSync(note as string))
if (mode === 'once') writeFileSync(note as string, '')
if (mode === 'noisy') process.stdout.write('Listening for connections...\n{ not json\n')

const page = (cursor = '0') => {
  const names = Object.keys(tools)
  const at = Number(cursor)
  if (at === 0) lists++
  const listed = names.slice(at, at + 4).map(name => ({ name, description: `does ${name}`, ...tools[name] }))
  const nextCursor = mode === 'endless' ? '0' : at + 4 < names.length ? String(at + 4) : undefined
  return { tools: listed, nextCursor }
}

const call = (id: unknown, name: string, args: Record<string, unknown>) => {
  const answer = (result: object) => send({ id, result })
  switch (name) {
    case 'echo':
      return answer(text(String(args.text)))
    case 'crash':
      process.stderr.write('out of memory\n')
      return process.exit(7)
    case 'hang':
      return
    case 'fail':
      return answer({ ...text('the disk is full'), isError: true })
    case 'environment':
      return answer({ ...text('see structuredContent'), structuredContent: { ...process.env } })
    case 'add_tool':
      tools[`added_${Object.keys(tools).length}`] = { inputSchema: object }
      send({ method: 'notifications/tools/list_changed' })
      return answer(text('added'))
    case 'flood':
      for (let i = 0; i < 100; i++) {
        tools[`flooded_${i}`] = { inputSchema: object }
        send({ method: 'notifications/tools/list_changed' })
      }
      return answer(text('flooded'))
    case 'lists':
      return answer(text(String(lists)))
    case 'cancelled':
      return answer({ content: [], structuredContent: cancelled })
    case 'parts':
      return answer({
        content: [
          { type: 'text', text: 'one' },
          { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
          { type: 'audio', data: 'AQID', mimeType: 'audio/wav' },
          { type: 'image', data: '*** not base64 ***', mimeType: 'image/png' },
          { type: 'resource', resource: { uri: 'file:///a.txt', text: 'inside a' } },
          { type: 'resource', resource: { uri: 'file:///b.bin', blob: 'AQID' } },
          { type: 'resource_link', uri: 'file:///c.txt', name: 'c', mimeType: 'text/plain' },
          { type: 'hologram', depth: 3 },
        ],
      })
    case 'garbage':
      return answer({ content: 'not a list', surprise: true })
    case 'big':
      return answer(text('x'.repeat(20_000_000)))
    case 'refuse':
      return send({ id, error: { code: -32602, message: 'not today' } })
    case 'liar':
      return answer({ content: [], structuredContent: { n: 'many' } })
    case 'honest':
      return answer({ ...text('{"n":3}'), structuredContent: { n: 3 } })
    default:
      return answer(text(`ran ${name}`))
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize' && !isMute) {
    const capabilities = { tools: { listChanged: true } }
    const serverInfo = { name: 'odd', version: '1' }
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo } })
  } else if (method === 'tools/list') send({ id, result: page(params?.cursor) })
  else if (method === 'tools/call') call(id, params.name, params.arguments)
  else if (method === 'notifications/cancelled') cancelled.push(params.reason ?? 'no reason')
}
