import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { foldersOf, startGiven, systemProgram } from '../../../src/base/programs.ts'
import { root } from '../../house/tree.ts'
import { temporaryFolder } from '../make.ts'

const names =
  'git cp unshare nsenter mount umount btrfs chmod du ps sh bwrap prlimit setpriv perl xdg-open'.split(' ')

test('programs that a sandboxed command puts first in the PATH of the host are not started by it', () => {
  using place = temporaryFolder()
  const [planted, marker] = [join(place.path, 'work/node_modules/.bin'), join(place.path, 'marker')]
  mkdirSync(planted, { recursive: true })
  for (const name of names) {
    writeFileSync(join(planted, name), `#!/bin/sh\necho ${name} >> ${marker}\n`)
    chmodSync(join(planted, name), 0o755)
  }
  const program = join(import.meta.dirname, 'path-program.ts')
  const run = spawnSync(process.execPath, [program, join(root, 'src'), place.path], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${planted}:${process.env.PATH}` },
  })
  expect(run.stdout, run.stderr).toContain('merged: true')
  expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').toBe('')
})

test('a program of the system is an absolute path, whatever the PATH says', () => {
  expect(systemProgram('sh')).toMatch(/^\/(usr\/)?bin\/sh$/)
  expect(() => systemProgram('no-such-program')).toThrow(/"no-such-program" in \/usr/)
})

test('folders of a PATH count only when they are absolute and there', () => {
  using place = temporaryFolder()
  expect(foldersOf(`.:node_modules/.bin::${place.path}:${place.path}/missing`)).toEqual([place.path])
})

test('what a person names is started with exactly the environment given', async () => {
  const env = { PATH: '/usr/bin:/bin', ONLY: 'this' }
  const child = startGiven('env', [], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const lines = (await child.stdout?.toArray())?.join('').trim().split('\n')
  expect(lines?.sort()).toEqual(['ONLY=this', 'PATH=/usr/bin:/bin'])
})
