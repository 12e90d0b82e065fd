// Code that a run names, and a resume without a workflow loads again. It awaits at its top, as a file that reads a prompt does.
import { readFile } from 'node:fs/promises'
import { Agent } from '../../../src/flow/agent.ts'
import { Workflow } from '../../../src/flow/workflow.ts'
import type { Session } from '../../../src/session/session.ts'
import { scripted } from '../../../src/testing/scripted.ts'

interface Package {
  readonly name: string
}

const text: string = await readFile(new URL('../../../package.json', import.meta.url), 'utf8')
const { name } = JSON.parse(text) as Package

export default class Awaiting extends Workflow {
  readonly agent = new Agent(`You know ${name}.`, { model: scripted(() => `I am ${name}.`), builtins: false })

  forward(session: Session) {
    return this.agent(session)
  }
}

export const instance = new Awaiting()
export const notes = ['no workflow']
