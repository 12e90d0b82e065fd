// Writes to a store until it is killed, and prints every acknowledgement after it came: `ack SESSION LENGTH HEAD`.
// Works with every driver: node writer.ts URL DURABILITY [SEED]
import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/spec.ts'

const [url = '', durability, seed = '0'] = process.argv.slice(2)
const trunks = 3

writeSync(1, 'started\n')
const store = await retrying(() => openStore(url, { secrets: {}, durability: durability as 'full' }))
// Whoever is killed writes no cache at its end.
flushCompileCache()
await Promise.all([...Array.from({ length: trunks }, (_, i) => appendTo(`trunk-${i}`)), branchOut()])

/** Appends to a session that all writers share, a large payload now and then. */
async function appendTo(tag: string): Promise<never> {
  const { id } = await retrying(() => found(store, tag))
  for (let i = 0; ; i++) {
    const text = `${seed} ${i} ${i % 40 === 7 ? 'large '.repeat(5000) : ''}`
    const row = await retrying(() =>
      store.sessions.append(id, [
        { kind: 'user', text },
        { kind: 'note', name: text },
      ]),
    )
    acknowledge(row.id, row.length, row.head)
  }
}

/** Puts sessions of its own, their forks, and what they merge into. */
async function branchOut(): Promise<never> {
  for (let i = 0; ; i++) {
    const base = Session.fromUserMessage(`base ${seed} ${i}`).user('go on').user('and on')
    const sides = base.forks(['left', 'right']).map(side => side.user(`${side.branch} ${i}`))
    const merged = await (sides[0] as Session).merge(sides[1] as Session)
    for (const session of [base, ...sides, merged]) {
      await retrying(() => store.sessions.put(session))
      acknowledge(session.id, session.length, session.head ?? null)
    }
  }
}

async function found(from: Store, tag: string): Promise<{ id: string }> {
  return from.sessions.row(tag).catch(() => from.sessions.put(Session.create('empty'), { tag }))
}

function acknowledge(id: string, length: number, head: string | null): void {
  writeSync(1, `ack ${id} ${length} ${head}\n`)
}

/** A refusal that may pass (a full disk, a server that is away) is said, and tried again; any other ends the program. */
async function retrying<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const { code, retry } = error as { code?: string; retry?: string }
      writeSync(1, `error ${code}\n`)
      if (retry !== 'after' && retry !== 'now') throw error
      await sleep(10)
    }
  }
}
