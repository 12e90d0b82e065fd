import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isolatedBackend } from '../../../src/sandbox/drivers/isolated/driver.ts'
import { temporaryFolder } from '../make.ts'
import { attacksOnGit } from './git-attacks.ts'

const { available, reason } = (await isolatedBackend().probe?.()) ?? { available: true }
if (!available) console.warn(`What sandboxes keep from the host is not tried: ${reason}`)

interface Report {
  readonly uid: number
  readonly attacks: Readonly<Record<string, boolean>>
  readonly [name: string]: unknown
}

function report(uid: number | undefined): Report {
  using place = temporaryFolder()
  const folder = join(place.path, 'work')
  mkdirSync(folder)
  chmodSync(place.path, 0o755)
  const program = [process.execPath, join(import.meta.dirname, 'guard-program.ts'), folder]
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--']
  if (uid !== undefined) chownSync(folder, uid, uid)
  const [first, ...rest] = uid === undefined ? program : [...user, ...program]
  const env = { ...process.env, HOME: folder, NODE_COMPILE_CACHE: '' }
  const { stdout, stderr } = spawnSync(first as string, rest, { encoding: 'utf8', env })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) throw new Error(`the attacks were not made: ${stderr}`)
  return JSON.parse(last)
}

const asRoot = process.getuid?.() === 0
const users = { 'this user': undefined, ...(asRoot && { 'an ordinary user': 12_345 }) }
if (available && !asRoot) console.warn('Root was not tried: the tests run as an ordinary user.')

for (const [name, uid] of Object.entries(users)) {
  test.runIf(available)(
    `commands of ${name} change neither git settings, nor loaded code, nor the record`,
    () => {
      const { attacks, ...found } = report(uid)
      expect(attacks).toEqual(Object.fromEntries(Object.keys(attacksOnGit).map(attack => [attack, true])))
      expect(found).toMatchObject({
        ...(uid !== undefined && { uid }),
        said: 'as installed',
        linked: 'as installed',
        beside: expect.stringContaining('the command made src/node_modules'),
        module: "export const load = () => import('lazy')\n".length,
        committed: '2',
        planted: {
          exitCode: 0,
          output: expect.stringContaining('removed: config.json, rath.db'),
          left: [],
        },
        files: {
          code: 'path-read-only',
          loaded: 'path-read-only',
          parent: 'path-read-only',
          git: 'path-read-only',
          hooks: 'path-read-only',
          record: 'path-outside',
          beside: 'path-read-only',
          own: 'done',
        },
      })
    },
  )
}
