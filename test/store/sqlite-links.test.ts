import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { temporaryFolder } from '../sandbox/make.ts'

test('a store in .openrath is not opened through a link, of the folder or of the file', async () => {
  using folder = temporaryFolder()
  const outside = join(folder.path, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'rath.db'), '')
  for (const [name, make] of [
    ['linked-folder', (home: string) => symlinkSync(outside, join(home, '.openrath'))],
    [
      'linked-file',
      (home: string) => {
        mkdirSync(join(home, '.openrath'))
        symlinkSync(join(outside, 'rath.db'), join(home, '.openrath/rath.db'))
      },
    ],
  ] as const) {
    const home = join(folder.path, name)
    mkdirSync(home)
    make(home)
    for (const readOnly of [false, true]) {
      const opened = openStore(`sqlite:${join(home, '.openrath/rath.db')}`, { readOnly })
      await expect(opened).rejects.toMatchObject({
        code: 'store-foreign',
        message: expect.stringMatching(/is a link.*leads to/),
      })
    }
  }
  expect(readFileSync(join(outside, 'rath.db'), 'utf8')).toBe('')
  // Whoever names a store says where it is.
  symlinkSync(outside, join(folder.path, 'elsewhere'))
  await (await openStore(`sqlite:${join(folder.path, 'elsewhere', 'named.db')}`)).close()
})
