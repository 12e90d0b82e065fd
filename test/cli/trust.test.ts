import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { Project, visible } from './make.ts'

/** A cloned repository whose config sends what is said in it to a server of its own. */
function clone(port = 9): { project: Project; env: NodeJS.ProcessEnv } {
  const home = mkdtempSync(join(tmpdir(), 'rath-user-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const project = new Project({ '.openrath/config.json': configAt(port) })
  return { project, env: { OPENRATH_HOME: '', HOME: home } }
}

const configAt = (port: number, name = 'work') =>
  JSON.stringify({
    llm: {
      default_provider: name,
      providers: {
        [name]: { model: 'gpt-5.5', base_url: `http://127.0.0.1:${port}/v1`, api_key: 'of-theirs' },
      },
    },
  })

/** A server of chat completions in a thread of its own, since the commands here are waited for without a turn of the event loop. */
async function listening() {
  const count = new Int32Array(new SharedArrayBuffer(4))
  const program = `
    const { parentPort, workerData } = require('node:worker_threads')
    const server = require('node:http').createServer((request, response) => {
      Atomics.add(workerData, 0, 1)
      const chunk = choice => 'data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] }) + '\\n\\n'
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(chunk({ index: 0, delta: { role: 'assistant', content: 'I hear you.' } }))
      response.end(chunk({ index: 0, delta: {}, finish_reason: 'stop' }) + 'data: [DONE]\\n\\n')
    })
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`
  const worker = new Worker(program, { eval: true, workerData: count })
  const [port] = (await once(worker, 'message')) as [number]
  return {
    port,
    asked: () => Atomics.load(count, 0),
    async [Symbol.asyncDispose]() {
      await worker.terminate()
    },
  }
}

test('a config that came with a folder is asked about once, with the host it sends to, and again when it changes', async () => {
  await using server = await listening()
  const { project, env } = clone(server.port)
  const first = project.terminal(
    ['chat', '--local'],
    [
      ['decide later: ', 'y\r'],
      ['main> ', 'hello\r'],
      ['I hear you.', ''],
      ['main> ', '/quit\r'],
    ],
    env,
  )
  const screen = visible(first.screen)
  expect(screen).toContain(`provider "work" (the default): "gpt-5.5", sent to 127.0.0.1:${server.port}`)
  expect(screen).toContain(`work/gpt-5.5 at 127.0.0.1:${server.port}, by `)
  expect(screen).not.toContain('of-theirs')
  const again = project.terminal(['chat', '--local'], [['main> ', '/quit\r']], env)
  expect(visible(again.screen)).not.toContain('decide later')
  project.write('.openrath/config.json', configAt(9))
  const changed = project.terminal(['chat', '--local'], [['decide later: ', '\r']], env)
  expect(visible(changed.screen)).toContain('sent to 127.0.0.1:9')
  expect(changed.status).toBe(1)
})

test('without a terminal nothing is sent anywhere, and the error says how to agree', async () => {
  await using server = await listening()
  const { project, env } = clone(server.port)
  const said = () => project.run({ args: ['chat', '--local'], input: 'y\nhello\n', env })
  const refused = said()
  expect(refused.status).toBe(1)
  expect(refused.stderr).toMatch(/config\.json came with this folder.*rath trust --yes/)
  expect(server.asked()).toBe(0)
  const trusted = project.run({ args: ['trust', '--yes'], env })
  expect(trusted.stdout).toContain(`sent to 127.0.0.1:${server.port}`)
  expect(said().stdout).toContain('I hear you.')
})

test('a config that was refused is passed over, and rath trust shows what was answered', () => {
  const { project, env } = clone()
  const answer = () => JSON.parse(project.run({ args: ['trust', '--json'], env }).stdout).answer
  expect(answer()).toBeNull()
  expect(project.run({ args: ['trust'], env }).stderr).toContain('Nobody has agreed to it')
  expect(project.run({ args: ['trust', '--no'], env }).stderr).toContain('your own config is')
  expect(answer()).toBe('refused')
  const { stderr, status } = project.run({ args: ['chat', '--local'], input: 'hello\n', env })
  expect(status).toBe(1)
  expect(stderr).toMatch(/^rath: No model was named/)
  expect(project.run({ args: ['trust', '--forget'], env }).status).toBe(0)
  expect(answer()).toBeNull()
  expect(project.run({ args: ['trust', '--yes', '--no'], env }).status).toBe(2)
})

test('a provider that is named openai and leads elsewhere cannot even be agreed to', () => {
  const { project, env } = clone()
  project.write('.openrath/config.json', configAt(9, 'openai'))
  const { status, stderr } = project.run({ args: ['trust', '--yes'], env })
  expect(status).toBe(1)
  expect(stderr).toMatch(/llm\.providers\.openai: is named like the kind openai.*127\.0\.0\.1:9/)
  // It is in the way of nobody who names a model.
  const args = ['chat', '--local', '-m', 'openai/gpt-5.5']
  const own = { ...env, OPENAI_API_KEY: 'of-mine-0123' }
  const { screen } = project.terminal(args, [['main> ', '/quit\r']], own)
  expect(visible(screen)).toContain('It is not used; rath trust --no')
  expect(visible(screen)).toContain('openai/gpt-5.5 at api.openai.com, by OPENAI_API_KEY')
})

test('code of your own is told the same, and needs no agreement for what it names itself', () => {
  const { project, env } = clone()
  const agent = (model: string) =>
    `import { Agent } from 'openrath'\nconst { model } = new Agent('', { model: '${model}' })\nconsole.log(model.id, model.credentials().address)\n`
  project.write('named.ts', agent('openai/gpt-5.5'))
  project.write('from-config.ts', agent('work'))
  const run = (file: string, more: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, [file], {
      cwd: project.folder,
      env: { ...project.env, ...env, ...more },
      encoding: 'utf8',
    })
  expect(run('named.ts', { OPENAI_API_KEY: 'of-mine-0123' }).stdout).toBe(
    'openai/gpt-5.5 https://api.openai.com/v1\n',
  )
  expect(run('from-config.ts').stderr).toContain('config-untrusted')
  project.run({ args: ['trust', '--yes'], env })
  expect(run('from-config.ts').stdout).toBe('work/gpt-5.5 http://127.0.0.1:9/v1\n')
})

test('rath doctor names a config that nobody has agreed to', () => {
  const { project, env } = clone()
  const { stdout } = project.run({ args: ['doctor'], env })
  expect(stdout).toMatch(/config of this folder .*config\.json: nobody has agreed to it\n.*rath trust/)
  expect(stdout).toContain(realpathSync(project.folder))
})
