import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Agent } from '../../src/flow/agent.ts'
import { Workspaces } from '../../src/run/place/workspaces.ts'
import { createRuntime, type Runtime } from '../../src/run/runtime.ts'
import { Session } from '../../src/session/session.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/spec.ts'
import { type Script, scripted } from '../../src/testing/scripted.ts'
import type { Tool, ToolContext } from '../../src/tool/spec.ts'
import { tool } from '../../src/tool/tool.ts'
import { temporaryFolder } from '../sandbox/make.ts'
import { mortal, release } from './journal/mortal.ts'

let folder: ReturnType<typeof temporaryFolder>
let store: Store
const open: Runtime[] = []
const project = () => join(folder.path, 'project')

beforeEach(async () => {
  folder = temporaryFolder()
  mkdirSync(project())
  writeFileSync(join(project(), 'log.txt'), 'begun\n')
  store = await openStore('memory:')
})

afterEach(async () => {
  await Promise.all(open.splice(0).map(runtime => runtime.close()))
  await store.close()
  folder[Symbol.dispose]()
})

function runtimeOn(store: Store): Runtime {
  const runtime = createRuntime({ store, workspaces: join(folder.path, 'kept') })
  open.push(runtime)
  return runtime
}

/** Writes its line behind those of the others; the one that dies has written half of it. */
const adds = (die?: () => void): Tool =>
  tool({
    name: 'add',
    description: 'Adds a line.',
    input: { type: 'object', properties: { line: { type: 'string' } }, required: ['line'] },
    effect: 'workspace',
    run: async ({ line }: { line: string }, { sandbox }: ToolContext) => {
      const { files } = await sandbox
      const before = new TextDecoder().decode(await files.read('log.txt'))
      if (die && line === 'last') {
        await files.write('log.txt', `${before}half of `)
        die()
        return new Promise(() => {})
      }
      await files.write('log.txt', `${before}${line}\n`)
      return before.split('\n').length
    },
  })

/** A run that dies while its last line is being written, and what a second process makes of it. */
async function resumed(
  session: Session,
  make: (tools: Tool[], scripts: readonly Script[]) => Agent,
  script: Script[] | ((die: () => void) => Script[]),
) {
  const { state, view } = mortal(store)
  const died = Promise.withResolvers<void>()
  const die = () => {
    state.dead = true
    died.resolve()
  }
  const scripts = typeof script === 'function' ? script(die) : script
  const pending = runtimeOn(view).run(make([adds(die)], scripts), session)
  await died.promise
  await release(store, pending.runId)
  const runtime = runtimeOn(store)
  const out = await runtime.resume(pending.runId, make([adds()], [...scripts.map(() => ['Done.'])]))
  await runtime.checkout(out)
  return { out, log: readFileSync(join(project(), 'log.txt'), 'utf8') }
}

const lines = (...all: string[]) => ({ toolCalls: all.map(line => ({ name: 'add', args: { line } })) })
const start = () => Session.fromUserMessage('go').to('local', project())
const alone = (tools: Tool[], [script]: readonly Script[]) =>
  new Agent('Log.', { model: scripted(script as Script), tools, builtins: false })

/** The same in an agent that is a tool of another. */
const nested = (tools: Tool[], [script, inner]: readonly Script[]) => {
  const clerk = new Agent('Log.', { name: 'clerk', model: scripted(inner as Script), tools, builtins: false })
  const all = [...tools, clerk.asTool({ name: 'ask', description: 'Asks.' })]
  return new Agent('Lead.', { name: 'lead', model: scripted(script as Script), tools: all, builtins: false })
}
const asks = { name: 'ask', args: { request: 'Log it.' } }

for (const [where, session] of [
  ['the placed folder', start],
  ['a branch', () => start().fork('branch')],
] as const) {
  describe(`a run cut off in the middle of a write, in ${where}, goes on with the files that belong to its record`, () => {
    it('when it was its very first call', async () => {
      const { log } = await resumed(session(), alone, [[lines('last')]])
      expect(log).toBe('begun\nlast\n')
    })

    it('when other calls of the same turn were done', async () => {
      const { log } = await resumed(session(), alone, [[lines('zero'), lines('one', 'two', 'last')]])
      expect(log).toBe('begun\nzero\none\ntwo\nlast\n')
    })

    it('when it was the first call of an agent inside, behind others of the turn outside', async () => {
      const outer = { toolCalls: [...lines('one').toolCalls, asks] }
      const { log } = await resumed(session(), nested, [[lines('zero'), outer], [lines('last')]])
      expect(log).toBe('begun\nzero\none\nlast\n')
    })

    it('when an agent inside had only to say that it was done', async () => {
      const outer = { toolCalls: [asks, ...lines('four').toolCalls] }
      const { log } = await resumed(session(), nested, die => [
        [lines('one'), outer],
        (_request, n) => {
          if (n === 0) return lines('two', 'three')
          die()
          return new Promise(() => {})
        },
      ])
      expect(log).toBe('begun\none\ntwo\nthree\nfour\n')
    })

    it('when an agent inside had done all there is, and the call around it tells of that', async () => {
      const { log, out } = await resumed(session(), nested, die => [
        [{ toolCalls: [asks] }],
        (_request, n) => {
          if (n === 0) return lines('one')
          die()
          return new Promise(() => {})
        },
      ])
      expect(log).toBe('begun\none\n')
      const result = out.chunks.find(chunk => chunk.kind === 'tool-result')
      expect(result).toMatchObject({ tool: 'ask', files: [{ path: 'log.txt', change: 'modified' }] })
    })

    it('when the agent inside had done others', async () => {
      const inner = [lines('two', 'three'), lines('four', 'last')]
      const { log } = await resumed(session(), nested, [[lines('one'), { toolCalls: [asks] }], inner])
      expect(log).toBe('begun\none\ntwo\nthree\nfour\nlast\n')
    })
  })
}

it('what files a placement began with is said again when whoever said it was killed in between', () => {
  const kept = new Workspaces(join(folder.path, 'kept'))
  mkdirSync(join(kept.folder, 'began'), { recursive: true })
  writeFileSync(join(kept.folder, 'began', 'placement'), '')
  expect(kept.began('placement')).toBeUndefined()
  expect([kept.begin('placement', 'one'), kept.begin('placement', 'two')]).toEqual(['one', 'one'])
})
