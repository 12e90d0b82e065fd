import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Agent } from '../../../src/flow/agent.ts'
import { createRuntime, type Runtime } from '../../../src/run/runtime.ts'
import { scripted } from '../../../src/testing/scripted.ts'
import { tool } from '../../../src/tool/tool.ts'
import { temporaryFolder } from '../../sandbox/make.ts'

/** Machines that share nothing but a store: each has a home and a project folder of its own. */
export class Machines implements AsyncDisposable {
  readonly #folder = temporaryFolder()
  readonly #open: Runtime[] = []

  pathOf(machine: string, ...names: readonly string[]): string {
    const path = join(this.#folder.path, machine)
    mkdirSync(join(path, 'project'), { recursive: true })
    return join(path, ...names)
  }

  runtime(machine: string, store: string): Runtime {
    const runtime = createRuntime({ store, workspaces: this.pathOf(machine, 'kept') })
    this.#open.push(runtime)
    return runtime
  }

  /** Hands a store that is a file over to another machine, as `cp` or a volume does. */
  copyStore(from: string, to: string): string {
    cpSync(this.pathOf(from, 'rath.db'), this.pathOf(to, 'rath.db'))
    return `sqlite:${this.pathOf(to, 'rath.db')}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#open.map(runtime => runtime.close()))
    this.#folder[Symbol.dispose]()
  }
}

type Calls = readonly { readonly name: string; readonly args: object }[]

/** An agent that makes these calls, one turn each, and is done. */
export function worker(name: string, ...turns: readonly Calls[]): Agent {
  const answers = turns.map(toolCalls => ({ toolCalls: toolCalls as { name: string; args: never }[] }))
  return new Agent('Work.', { name, model: scripted([...answers, `${name} is done`]) })
}

export const writes = (path: string, content: string) => ({
  name: 'write_workspace_file',
  args: { path, content },
})
export const runs = (cmd: string) => ({ name: 'run_shell_command', args: { cmd } })

/** Waits for a person before it does anything. */
export const publish = tool({
  name: 'publish',
  description: 'Publishes.',
  input: { type: 'object', properties: {} },
  effect: 'external',
  approval: true,
  run: () => 'published',
})
