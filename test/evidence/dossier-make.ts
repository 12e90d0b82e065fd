import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DossierOptions, dossierOf } from '../../src/evidence/dossier/dossier-of.ts'
import { Agent } from '../../src/flow/agent.ts'
import { Parallel } from '../../src/flow/containers.ts'
import { Workflow } from '../../src/flow/workflow.ts'
import { createRuntime } from '../../src/run/runtime.ts'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import type { ChunkInput } from '../../src/session/chunk.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'
import { type Answer, scripted } from '../../src/testing/scripted.ts'
import { tool } from '../../src/tool/tool.ts'

export const environment = { openrath: '0.1.0', node: 'v24.0.0', platform: 'linux x64' }

const price = (inputTokens: number, outputTokens: number) => ({
  usage: {
    inputTokens,
    outputTokens,
    cachedInputTokens: Math.floor(inputTokens / 2),
    cost: inputTokens / 1e5,
  },
})
const shell = (cmd: string) => ({
  toolCalls: [{ name: 'run_shell_command', args: { cmd } }],
  ...price(900, 40),
})
const write = (path: string, content: string) => ({
  toolCalls: [{ name: 'write_workspace_file', args: { path, content } }],
  ...price(1_400, 210),
})
const says = (text: string) => ({ text, ...price(1_800, 60) })

const better = "exports.slug = text => text.trim().toLowerCase().replace(/\\s+/g, '-')\n"
const test =
  "const { slug } = require('./slug.js')\nif (slug(' Two  Words ') !== 'two-words') throw new Error('got ' + slug(' Two  Words '))\n"

/** Two writers mend a function, one of them is picked, and a person lets the result be published: a real run in a real folder. */
export async function story() {
  const top = await mkdtemp(join(tmpdir(), 'dossier-'))
  const folder = join(top, 'work')
  await mkdir(folder)
  await writeFile(join(folder, 'slug.js'), "exports.slug = text => text.toLowerCase().replace(' ', '-')\n")
  await writeFile(join(folder, 'test.js'), test)
  const store = await openStore('memory:', { secrets: { DEPLOY_TOKEN: 'tok-1234567890' } })
  const runtime = withHome(join(top, 'home'), () => createRuntime({ store }))
  const publish = tool({
    name: 'publish',
    description: 'Publishes the package.',
    input: {
      type: 'object',
      properties: { version: { type: 'string' }, token: { type: 'string' } },
      required: ['version'],
    },
    effect: 'external',
    approval: true,
    run: ({ version }: { version: string }) => `published ${version}`,
  })
  const agent = (name: string, script: Answer[], options: object = {}) =>
    new Agent(`You are ${name}. Mend the code, run the tests, and say in a sentence what you did.`, {
      name,
      model: scripted(script, { id: `scripted/${name}` }),
      retry: { baseMs: 0 },
      ...options,
    })
  class Mend extends Workflow {
    writers = new Parallel(
      {
        careful: agent('careful', [
          { ...shell('node test.js'), reasoning: 'First see it fail.' },
          write('slug.js', better),
          shell('node test.js'),
          says('I trim the text and replace every run of white space; the test passes.'),
        ]),
        quick: agent('quick', [
          { error: { status: 429, message: 'slow down' } },
          write('slug.js', "exports.slug = text => text.toLowerCase().split(' ').join('-')\n"),
          shell('node test.js'),
          says('I split at spaces. The test still fails for double spaces.'),
        ]),
      },
      { join: branches => branches[0] as Session },
    )
    publisher = agent(
      'publisher',
      [
        {
          toolCalls: [{ name: 'publish', args: { version: '1.0.1', token: 'tok-1234567890' } }],
          ...price(2_000, 30),
        },
        says('`slug` now trims its input and joins words with single hyphens. Version 1.0.1 is published.'),
      ],
      { tools: [publish], builtins: false },
    )

    async forward(session: Session) {
      return this.publisher(await this.writers(session))
    }
  }
  const task = 'Mend slug.js so that test.js passes, then publish it.\n\nDo not change the test.'
  const input = Session.fromUserMessage(task).to('local', folder)
  const pending = runtime.run(new Mend(), input, {
    approve: () => ({ verdict: 'approved' as const, by: 'ada', reason: 'The diff is small.' }),
  })
  const result = await pending
  return {
    store,
    run: pending.runId,
    result,
    workspaces: join(top, 'home', 'workspaces'),
    async [Symbol.asyncDispose]() {
      await runtime.close()
      await store.close()
      await rm(top, { recursive: true, force: true })
    },
  }
}

/** A runtime keeps files under the home that is set when it is made. */
function withHome<T>(home: string, make: () => T): T {
  const { OPENRATH_HOME: before } = process.env
  process.env.OPENRATH_HOME = home
  try {
    return make()
  } finally {
    if (before === undefined) delete process.env.OPENRATH_HOME
    else process.env.OPENRATH_HOME = before
  }
}

export function dossierOfStory(store: Store, name: string, options: DossierOptions = {}) {
  return dossierOf(store, name, {
    at: Date.UTC(2026, 0, 5),
    environment,
    sandboxes: [localBackend()],
    ...options,
  })
}

/** A session with every kind of chunk and `size` chunks or more, made by rule. */
export function longSession(size: number): Session {
  const start = Date.UTC(2026, 0, 5, 9)
  const chunks: ChunkInput[] = []
  for (let i = 0; chunks.length < size; i++) {
    const by = `Nightly/worker-${i % 5}`
    const at = start + i * 900
    const callId = `call-${i}`
    const exitCode = i % 37 === 0 ? 1 : 0
    chunks.push(
      {
        kind: 'assistant',
        by,
        at,
        model: `example/model-${i % 2}`,
        text: i % 4 === 0 ? `Looking at part ${i}. ${'It is like the one before. '.repeat(i % 9)}` : '',
        toolCalls: [{ id: callId, name: 'run_shell_command', args: { cmd: `make part-${i}` } }],
        usage: { inputTokens: 1200 + i, outputTokens: 80, cost: 0.004 },
      },
      {
        kind: 'tool-result',
        by,
        at: at + 400,
        callId,
        tool: 'run_shell_command',
        args: { cmd: `make part-${i}` },
        outcome: {
          kind: 'value',
          value: { exitCode, stdout: `part ${i}\n`.repeat(1 + (i % 60)), stderr: '' },
        },
        durationMs: 350,
        ranOn: { backend: 'local', id: 'one', cwd: '/work' },
        ...(i % 10 === 0 && {
          files: [
            {
              path: `src/part-${i}.ts`,
              change: 'added',
              patch: `--- /dev/null\n+++ b/src/part-${i}.ts\n@@ -0,0 +1,2 @@\n+export const part = ${i}\n+\n`,
            },
          ],
        }),
      },
    )
    if (i % 50 === 0)
      chunks.push({
        kind: 'error',
        by,
        at: at + 500,
        error: 'model-overloaded',
        message: 'busy',
        attempt: 1,
        retry: 'after',
      })
    if (i % 60 === 0)
      chunks.push({
        kind: 'memory',
        by,
        at: at + 600,
        op: 'recall',
        store: 'local',
        query: `part ${i}`,
        hits: [{ id: `m${i}`, text: 'Parts are built in order.', score: 0.82 }],
        injected: 'Parts are built in order.',
      })
  }
  return Session.fromUserMessage('Build every part.')
    .append(...chunks)
    .append({ kind: 'assistant', text: 'All parts are built.' })
}

/** What a model or a command might say to act on whoever reads it. */
export const hostile = [
  '</script><script>document.title = "taken"</script></style><style>*{display:none}</style>',
  '<img src=x onerror="document.title = \'taken\'">',
  '<svg onload=alert(1)><a href="javascript:alert(1)">click</a>',
  '" onmouseover="alert(1)" x="\' onfocus=\'alert(1)',
  '[link](javascript:alert(1)) ![pixel](https://example.com/pixel.png)',
  '```\n# not a heading\n````',
  '\u001b[31mred\u001b[0m \u001b]8;;https://example.com\u0007link',
  '\u202ereversed\u202c \u2066isolated\u2069 \u200bhidden \u{e0041}',
  '--><!-- ]]> &lt;b&gt; &#106;avascript: {{7*7}}',
].join('\n')

/** The same in every place that a text can be recorded. */
export function hostileSession(): Session {
  const by = `Agent/${hostile}`
  const ranOn = { backend: hostile, id: hostile, cwd: hostile }
  const files = [
    { path: hostile, change: 'renamed', from: hostile, patch: `+${hostile}\n-${hostile}\n` },
  ] as const
  const value = { exitCode: 1, stdout: hostile, stderr: hostile, signal: hostile }
  return Session.fromUserMessage(hostile)
    .to('local', hostile)
    .fork({ label: hostile, by })
    .append(
      { kind: 'system', content: hostile, by },
      {
        kind: 'assistant',
        text: hostile,
        reasoning: hostile,
        model: hostile,
        finishReason: hostile,
        by,
        toolCalls: [
          { id: hostile, name: hostile, args: { [hostile]: hostile } },
          { id: 'open', name: hostile, args: hostile },
        ],
      },
      { kind: 'note', name: 'drift', data: { files: [{ path: hostile }] }, by },
      {
        kind: 'tool-result',
        callId: hostile,
        tool: hostile,
        outcome: { kind: 'value', value },
        ranOn,
        files,
        by,
      },
      {
        kind: 'tool-result',
        callId: 'none',
        tool: hostile,
        outcome: { kind: 'error', error: hostile, message: hostile },
        by,
      },
      {
        kind: 'tool-result',
        callId: 'none',
        tool: hostile,
        outcome: { kind: 'denied', reason: hostile },
        by,
      },
      {
        kind: 'memory',
        op: 'recall',
        store: hostile,
        query: hostile,
        hits: [{ id: hostile, text: hostile, score: 1 }],
        injected: hostile,
        entries: [hostile],
        error: hostile,
        by,
      },
      { kind: 'route', candidates: [{ name: hostile }], choice: hostile, reason: hostile },
      { kind: 'approval', approval: hostile, tool: hostile, args: { a: hostile }, question: hostile },
      { kind: 'approval', approval: hostile, verdict: 'rejected', decidedBy: hostile, reason: hostile },
      { kind: 'verdict', verdict: 'reject', subject: hostile, reason: hostile },
      { kind: 'error', error: hostile, message: hostile },
      { kind: 'note', name: hostile, data: { [hostile]: hostile } },
      { kind: 'assistant', text: hostile, by },
    )
}
