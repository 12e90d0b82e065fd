import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { brokenLine } from '../../src/demo/repository.ts'
import { entry, Project } from './make.ts'

interface Asked {
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

type Said = string | { readonly name: string; readonly args: object }

test('--live asks the model that the environment names, for the same task, over its real protocol', async () => {
  const project = new Project()
  let asked = 0
  const server = createServer(async (request, response) => {
    asked++
    const body = (await json(request)) as Asked
    send(response, answer(body), body.stream === true)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const env = {
      ...project.env,
      TMPDIR: project.folder,
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_API_KEY: 'key-of-the-test',
      OPENAI_DEFAULT_MODEL: 'house-model',
    }
    const child = spawn(process.execPath, [entry, 'demo', '--live'], { cwd: project.folder, env })
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^The model is \S*house-model\.$/m)
    expect(stdout).not.toContain('script')
    expect(stdout).toMatch(/^validator on careful +rejects it: Exit code 1/m)
    expect(stdout).toMatch(
      /^attempts +brings the files of quick back to the folder; careful stays on the record\.$/m,
    )
    expect(asked).toBeGreaterThan(10)
  } finally {
    server.close()
  }
})

/** A model with a mind of its own: here it is the careful coder who gets it wrong. */
function answer({ messages, tools = [] }: Asked): Said {
  const all = JSON.stringify(messages)
  const has = (name: string) => tools.some(tool => tool.function.name === name)
  const finished = messages.findLastIndex(({ role, content }) => role === 'assistant' && content)
  const results = messages.slice(finished + 1).filter(({ role }) => role === 'tool').length
  if (has('run_shell_command')) {
    const [, cmd = ''] = /run with `([^`]+)`/.exec(all) ?? []
    return results === 0 ? { name: 'run_shell_command', args: { cmd } } : 'It has ended.'
  }
  if (has('edit_workspace_file')) {
    const good =
      "  return title.normalize('NFKD').replace(/[^a-z0-9 ]/gi, '').trim().toLowerCase().replace(/ +/g, '-')"
    const edit = all.includes('smallest edit') ? good : "  return 'wrong'"
    const args = { path: 'src/slug.js', old: brokenLine, new: edit }
    return results === 0 ? { name: 'edit_workspace_file', args } : 'Mended.'
  }
  if (has('read_workspace_file')) {
    return results === 0
      ? { name: 'read_workspace_file', args: { path: 'ISSUE.md' } }
      : 'Findings: only one space is replaced.'
  }
  const choice = all.includes('It has ended.')
    ? 'none'
    : all.includes('Findings: only')
      ? 'Attempts'
      : 'researcher'
  return JSON.stringify({ reason: 'It is time.', choice })
}

/** As a server of chat completions says it, in one piece or as a stream. */
function send(response: ServerResponse, said: Said, asStream: boolean): void {
  const head = { id: '1', created: 1, model: 'house-model' }
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const message = {
    role: 'assistant',
    ...(typeof said === 'string' ? { content: said } : { tool_calls: [callOf(said)] }),
  }
  const finish_reason = typeof said === 'string' ? 'stop' : 'tool_calls'
  response.setHeader('content-type', asStream ? 'text/event-stream' : 'application/json')
  if (!asStream) {
    response.end(JSON.stringify({ ...head, choices: [{ index: 0, message, finish_reason }], usage }))
    return
  }
  const pieces = [
    { ...head, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason }], usage },
  ]
  response.end(`${pieces.map(piece => `data: ${JSON.stringify(piece)}\n\n`).join('')}data: [DONE]\n\n`)
}

function callOf({ name, args }: Exclude<Said, string>) {
  const call = { name, arguments: JSON.stringify(args) }
  return { index: 0, id: `call-${++calls}`, type: 'function', function: call }
}

let calls = 0
