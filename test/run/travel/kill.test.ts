import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { Workspaces } from '../../../src/run/place/workspaces.ts'
import { objectsBelow } from '../../../src/sandbox/workspace/tree.ts'
import { packsNamed } from '../../../src/session/fold.ts'
import type { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { torture } from '../../support/torture.ts'
import { Machines } from './make.ts'

const kills = torture({ short: 5, full: 100 })

it(`${kills} kills between keeping a tree and sending it: no file of a chunk that the store has is missing`, async () => {
  await using machines = new Machines()
  const url = `sqlite:${machines.pathOf('one', 'rath.db')}`
  const acknowledged = new Set<string>()
  let checked = 0
  for (let kill = 0; kill < kills; kill++) {
    for (const id of await untilKilled(machines, url, kill)) acknowledged.add(id)
    if (kill % 5 !== 4 && kill !== kills - 1) continue
    // Nothing that a session names is freed, however young what is collected may be.
    const store = await openStore(url)
    await store.gc({ olderThan: 0 })
    await store.close()
    checked += await checkAll(machines, `check-${kill}`, acknowledged)
  }
  console.log(`${kills} kills, ${acknowledged.size} sessions acknowledged, ${checked} trees checked`)
  expect(checked).toBeGreaterThan(0)
}, 1_800_000)

/** Lets a process work and kills it at some moment after a few acknowledgements; the sessions that it said were kept. */
async function untilKilled(machines: Machines, url: string, seed: number): Promise<string[]> {
  const program = join(import.meta.dirname, 'sender.ts')
  const args = [url, machines.pathOf('one', 'kept'), machines.pathOf('one', 'project'), String(seed)]
  const child: ChildProcess = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = new Promise(resolve => child.on('close', resolve))
  const ids: string[] = []
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const least = 1 + Math.floor(Math.random() * 3)
  await new Promise<void>(resolve => {
    lines.on('line', line => {
      if (line !== 'ready') ids.push(line)
      // A round takes some ten milliseconds: anywhere in one.
      if (ids.length === least) setTimeout(resolve, Math.random() * 60)
    })
  })
  child.kill('SIGKILL')
  await closed
  return ids
}

/** On a machine that has nothing but the store: every tree of every session is whole. */
async function checkAll(machines: Machines, machine: string, ids: ReadonlySet<string>): Promise<number> {
  const runtime = machines.runtime(machine, machines.copyStore('one', machine))
  expect(existsSync(machines.pathOf(machine, 'kept'))).toBe(false)
  const all: Session[] = []
  for (const { id } of (await runtime.sessions.list({ limit: 1000 })).rows)
    all.push(await runtime.sessions.get(id))
  expect(all.map(({ id }) => id)).toEqual(expect.arrayContaining([...ids]))
  const workspaces = new Workspaces(machines.pathOf(machine, 'kept'))
  const objects = await workspaces.objects
  const trees = new Set<string>()
  for (const session of all) {
    for (const chunk of session.chunks) {
      if (chunk.kind !== 'tool-result' || chunk.tree === undefined || trees.has(chunk.tree)) continue
      await runtime.places.bring([chunk.tree, chunk.before], packsNamed(chunk))
      for (const tree of [chunk.tree, chunk.before as string]) {
        for (const id of objectsBelow(objects, tree, new Set()))
          expect(objects.has(id), `${id} of ${tree}`).toBe(true)
        trees.add(tree)
      }
    }
  }
  const newest = all.find(session => ids.has(session.id)) as Session
  await runtime.checkout(newest, machines.pathOf(machine, 'out'))
  expect(readdirSync(machines.pathOf(machine, 'out')).length).toBeGreaterThan(0)
  await runtime.close()
  return trees.size
}
