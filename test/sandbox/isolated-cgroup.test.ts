import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type CgroupMachine, makeCgroup } from '../../src/sandbox/drivers/isolated/cgroup.ts'

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

test('a user in a login session gets a group of their own systemd, once a scope of it works', () => {
  const base = mkdtempSync(join(tmpdir(), 'openrath-cgroup-'))
  onTestFinished(() => rmSync(base, { recursive: true, force: true }))
  const service = join(base, 'user.slice/user-1000.slice/user@1000.service')
  mkdirSync(service, { recursive: true })
  writeFileSync(join(service, 'cgroup.subtree_control'), 'cpu memory pids\n')
  const asked: string[] = []
  const machine = (works: boolean, runtimeFolder: string | undefined = '/run/user/1000'): CgroupMachine => ({
    base,
    own: '0::/user.slice/user-1000.slice/session-3.scope\n',
    uid: 1000,
    runtimeFolder,
    make(folder) {
      mkdirSync(folder)
      for (const file of ['memory.max', 'memory.swap.max', 'pids.max'])
        writeFileSync(join(folder, file), 'max')
    },
    endsWell(program, args, env) {
      asked.push([program, ...args.slice(0, 2), env.XDG_RUNTIME_DIR].join(' '))
      return works
    },
  })
  const limits = { memory: 1e9, processes: 100 }
  expect(makeCgroup(limits, machine(false))).toBeUndefined()
  asked.length = 0
  const group = makeCgroup(limits, machine(true))
  const [door = ''] = group?.doors ?? []
  expect(dirname(dirname(door))).toBe(service)
  expect(group?.join.slice(0, 7)).toEqual([
    ...['systemd-run', '--user', '--scope', '--quiet', '--collect', '--', '/bin/sh'],
  ])
  expect(group?.env).toEqual({ XDG_RUNTIME_DIR: '/run/user/1000' })
  expect(
    ['memory.max', 'memory.swap.max', 'pids.max'].map(file =>
      readFileSync(join(dirname(door), file), 'utf8'),
    ),
  ).toEqual(['1000000000', '0', '100'])
  expect(asked).toEqual(['systemd-run --user --scope /run/user/1000'])
  expect(makeCgroup(limits, { ...machine(true), runtimeFolder: undefined })).toBeUndefined()
})
