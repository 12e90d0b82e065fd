import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const program = `
  import { makeCgroup } from './src/sandbox/drivers/isolated/cgroup.ts'
  const group = makeCgroup({ memory: 1e9, processes: 100 })
  console.log(JSON.stringify(group?.doors ?? []))
  group?.abandon()
`
const makeOne = (): string[] => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  return JSON.parse(stdout)
}
const [door] = makeOne()
if (door === undefined)
  console.warn('No cgroup can be made here: what killed processes left of them is not tested.')

test.skipIf(door === undefined)(
  'groups that killed processes left are taken away by the next, and no others',
  async () => {
    const parent = dirname(dirname(door as string))
    const { pid: gone } = spawnSync('true')
    const living = spawn('sleep', ['60'])
    const left = (pid: number | undefined, ageMs: number) => {
      const time = (Date.now() - ageMs).toString(16).padStart(12, '0')
      const folder = join(
        parent,
        `openrath-${pid}-${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`,
      )
      mkdirSync(folder)
      return folder
    }
    const old = left(gone, 120_000)
    const stay = [left(gone, 0), left(living.pid, 120_000)]
    try {
      makeOne()
      expect(existsSync(old)).toBe(false)
      expect(stay.map(folder => existsSync(folder))).toEqual([true, true])
    } finally {
      living.kill()
      for (const folder of [old, ...stay]) if (existsSync(folder)) rmdirSync(folder)
    }
  },
)
