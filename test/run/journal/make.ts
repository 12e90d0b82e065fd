import { createRuntime, type RuntimeOptions } from '../../../src/run/runtime.ts'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store, StoreOptions } from '../../../src/store/spec.ts'
import type { Tool } from '../../../src/tool/spec.ts'
import { tool } from '../../../src/tool/tool.ts'

/** A runtime over a memory store of its own. */
export async function fresh(options: StoreOptions = {}, more: Omit<RuntimeOptions, 'store'> = {}) {
  const store = await openStore('memory:', options)
  return { store, runtime: createRuntime({ ...more, store }) }
}

/** Another process's view of the same store. */
export const elsewhere = (store: Store, more: Omit<RuntimeOptions, 'store'> = {}) =>
  createRuntime({ ...more, store })

export const say = (text = 'go'): Session => Session.fromUserMessage(text)

/** A tool without arguments that counts how often it really ran. */
export function counted(name: string, effect: Tool['effect'], more: Partial<Tool> = {}) {
  const counter = { ran: 0 }
  const made = tool({
    name,
    description: name,
    input: { type: 'object' },
    effect,
    run: () => `${name} ${++counter.ran}`,
  })
  return { counter, tool: { ...made, ...more } as Tool }
}

export const calls = (...names: string[]) => ({ toolCalls: names.map(name => ({ name })) })

export const kindsOf = async (store: Store, run: string) =>
  (await store.runs.journal(run)).map(entry => entry.kind).filter(kind => kind !== 'definition')
