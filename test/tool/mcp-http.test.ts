import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { mcpTools } from '../../src/tool/mcp/mcp-tools.ts'
import { call, dispatch, gate, numbered } from './make.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanup.splice(0)) await clean()
})

/** An MCP server behind an address, by hand, that can forget its sessions as one does that was restarted. */
async function forgetful() {
  const sessions = new Set<string>()
  let opened = 0
  /** How many calls arrived; those with `wait` are answered when it opens. */
  let calls = 0
  const wait = gate()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const session = request.headers['mcp-session-id'] as string | undefined
    if (request.method === 'DELETE') sessions.delete(session as string)
    if (request.method !== 'POST') return response.writeHead(request.method === 'GET' ? 405 : 200).end()
    const { id, method, params } = JSON.parse(body)
    const answer = (result: object, headers = {}) => {
      response.writeHead(200, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
    if (method === 'initialize') {
      const name = `session-${++opened}`
      sessions.add(name)
      const { protocolVersion } = params
      const result = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'h', version: '1' } }
      return answer(result, { 'mcp-session-id': name })
    }
    if (method === 'tools/call') calls++
    if (params?.arguments?.wait) await wait.promise
    else if (!sessions.has(session as string)) return response.writeHead(404).end()
    if (method === 'tools/list') return answer({ tools: [{ name: 't', inputSchema: { type: 'object' } }] })
    if (method === 'tools/call') return answer({ content: [{ type: 'text', text: session }] })
    return response.writeHead(202).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  cleanup.push(() => new Promise(resolve => server.close(resolve).closeAllConnections()))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  return { url, sessions, wait, calls: () => calls }
}

test('many calls that find their session forgotten open one new connection, and closing leaves none', async () => {
  const { url, sessions } = await forgetful()
  const server = await mcpTools({ url }, { effect: 'read' })
  sessions.clear()
  const calls = numbered(...Array.from({ length: 20 }, () => call('t')))
  const { outcomes } = await dispatch(server.tools, calls, { limit: 20 })
  expect(outcomes.map(outcome => outcome.kind === 'value' && outcome.value)).toEqual(
    calls.map(() => 'session-2'),
  )
  expect([...sessions]).toEqual(['session-2'])
  await server.close()
  expect([...sessions]).toEqual([])
})

test('a call that is being answered is not lost to another that finds the session forgotten', async () => {
  const { url, sessions, wait, calls } = await forgetful()
  const server = await mcpTools({ url }, { effect: 'read' })
  const slow = dispatch(server.tools, numbered(call('t', { wait: true })))
  await expect.poll(calls).toBe(1)
  sessions.clear()
  expect((await dispatch(server.tools, numbered(call('t')))).outcomes).toMatchObject([{ value: 'session-2' }])
  wait.open()
  expect((await slow).outcomes).toMatchObject([{ value: 'session-1' }])
  await server.close()
})
