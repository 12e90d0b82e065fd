import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../sandbox/make.ts'
import { torture } from '../support/torture.ts'
import { seeded } from './journal/drive.ts'

// A run of the same seed plans the same kills.
const merges = torture({ short: 4, full: 50 })
const seed = Number(process.env.OPENRATH_SEED ?? Math.floor(Math.random() * 2 ** 31))
const names = ['ann', 'bob', 'cem']

interface Merged {
  readonly acknowledged: readonly number[]
  readonly lost: readonly string[]
  readonly kills: number
}

/** One of the processes, begun again behind its last acknowledged merge whenever it is killed. */
async function merge(name: string, folder: string, random: (() => number) | undefined): Promise<Merged> {
  const acknowledged: number[] = []
  const lost: string[] = []
  let kills = 0
  while (acknowledged.length < merges) {
    const from = acknowledged.length
    const args = [join(folder, 'project'), join(folder, 'kept'), name, String(from), String(merges)]
    const program = join(import.meta.dirname, 'journal/merger.ts')
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let errors = ''
    child.stderr.on('data', data => {
      errors += data
    })
    const ended = new Promise(resolve => child.on('close', resolve))
    // Most kills are to hit while files are being taken back, which begins some milliseconds after the line that announces it.
    const isDoomed = random !== undefined && kills * 4 < merges
    const doomed = isDoomed ? from + Math.floor(random() * Math.min(3, merges - from)) : undefined
    const delay = random === undefined ? 0 : random() * 60
    for await (const line of createInterface({ input: child.stdout })) {
      const [what, number] = line.split(' ')
      if (what === 'merged') acknowledged.push(Number(number))
      if (what === 'lost') lost.push(`${name} ${line}`)
      if (what === 'begin' && Number(number) === doomed) {
        await wait(delay)
        if (child.kill('SIGKILL')) kills++
      }
    }
    const status = await ended
    if (status !== 0 && child.signalCode !== 'SIGKILL')
      throw new Error(`${name} ended with ${status}: ${errors}`)
  }
  return { acknowledged, lost, kills }
}

for (const [what, isKilled] of [
  ['', false],
  [', with processes killed at random moments', true],
] as const) {
  it(`three processes merge into one folder ${merges} times each, and nothing is lost${what}`, async () => {
    using folder = temporaryFolder()
    const project = join(folder.path, 'project')
    mkdirSync(project)
    const gap = '\n-\n-\n-\n-\n'
    writeFileSync(join(project, 'lines.txt'), names.map(name => `${name}: none`).join(gap))
    const random = isKilled ? seeded(seed) : undefined
    const all = await Promise.all(names.map(name => merge(name, folder.path, random)))
    const kills = all.reduce((sum, one) => sum + one.kills, 0)
    if (isKilled) console.log(`${kills} kills in ${merges * names.length} merges; seed ${seed}`)
    expect(all.flatMap(({ lost }) => lost)).toEqual([])
    for (const [i, name] of names.entries()) {
      const { acknowledged } = all[i] as Merged
      expect(acknowledged).toEqual(Array.from({ length: merges }, (_, n) => n))
      for (const n of acknowledged) {
        expect(readFileSync(join(project, name, String(n), 'file.txt'), 'utf8')).toBe(`${name} ${n}\n`)
      }
      expect(readFileSync(join(project, 'lines.txt'), 'utf8')).toContain(`${name}: ${merges - 1} `)
    }
    expect(existsSync(join(project, '.openrath'))).toBe(false)
    expect(readdirSync(project).sort()).toEqual([...names, 'lines.txt'])
  })
}
