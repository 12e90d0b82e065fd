import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { Workflow } from '../../src/flow/workflow.ts'
import type { ForwardContext } from '../../src/run/forward.ts'
import type { Session } from '../../src/session/session.ts'
import { elsewhere, fresh, say } from './journal/make.ts'
import { mortal, release } from './journal/mortal.ts'
import { failureOf } from './make.ts'

const asked = Promise.withResolvers<void>()

/** Says what it was sent, and sets two cookies. */
const server = createServer(async (request, response) => {
  if (request.url === '/never') return void asked.resolve()
  const body = (await request.toArray()).join('')
  response.setHeader('set-cookie', ['a=1', 'b=2'])
  response.end(`${request.method} ${request.headers['content-type']} ${body}`)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

type Body = NonNullable<RequestInit['body']>

class Post extends Workflow {
  readonly body: () => Body
  readonly path: string
  readonly answers: Response[] = []
  constructor(body: () => Body, path = '') {
    super()
    this.body = body
    this.path = path
  }
  async forward(session: Session, { fetch }: ForwardContext) {
    this.answers.push(await fetch(url + this.path, { method: 'POST', body: this.body() }))
    return session
  }
}

const form = () => {
  const made = new FormData()
  made.set('name', 'ada')
  return made
}

const bodies: Record<string, readonly [() => Body, RegExp]> = {
  text: [() => 'hello', /^POST text\/plain;charset=UTF-8 hello$/],
  'a query': [() => new URLSearchParams({ a: '1' }), /^POST application\/x-www-form-urlencoded\S* a=1$/],
  'a form': [form, /^POST multipart\/form-data; boundary=/],
}
for (const [what, [body, sent]] of Object.entries(bodies)) {
  it(`a recorded fetch sends ${what} as what it is, and a replay gives the whole response`, async () => {
    const { runtime } = await fresh()
    const post = new Post(body)
    const pending = runtime.run(post, say())
    await pending
    expect(await runtime.replay(pending.runId, post)).toMatchObject({ ok: true })
    for (const answer of post.answers) {
      expect(await answer.text()).toMatch(sent)
      expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    }
    expect(post.answers).toHaveLength(2)
  })
}

it('a recorded fetch that was cut off takes the word of a reviewer for its response', async () => {
  const { store } = await fresh()
  const { state, view } = mortal(store)
  const { runId } = elsewhere(view).run(new Post(() => 'pay', 'never'), say())
  await asked.promise
  state.dead = true
  await release(store, runId)
  const runtime = elsewhere(store)
  const post = new Post(() => 'pay', 'never')
  const { data } = await failureOf(runtime.resume(runId, post))
  const [{ id }] = data.calls as unknown as [{ id: string }]
  await runtime.review(runId, id, { happened: true })
  await runtime.resume(runId, post)
  expect(post.answers).toMatchObject([{ ok: true, status: 200 }])
})
