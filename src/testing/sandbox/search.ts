import assert from 'node:assert/strict'
import type { Sandbox } from '../../sandbox/spec.ts'
import { refused } from '../refused.ts'
import { output, type SandboxCases } from './case.ts'

async function project({ files }: Sandbox): Promise<void> {
  await files.write('readme.md', '# Title\n\nneedle in the readme\n')
  await files.write('src/main.ts', 'const needle = 1\nconst other = 2\r\nneedle()\n')
  await files.write('src/deep/test.ts', 'needles a+b\n')
  await files.write('src/data.bin', new Uint8Array([0, 110, 101, 101, 100, 108, 101]))
  await files.write('node_modules/x/index.ts', 'needle')
  await files.write('.git/config', 'needle')
}

export function searchCases(): SandboxCases {
  return {
    async 'lines that hold a text are found in the order of the paths, with their numbers'(sandbox) {
      await project(sandbox)
      assert.deepEqual(await sandbox.files.search({ text: 'needle' }), {
        matches: [
          { path: 'readme.md', line: 3, text: 'needle in the readme' },
          { path: 'src/deep/test.ts', line: 1, text: 'needles a+b' },
          { path: 'src/main.ts', line: 1, text: 'const needle = 1' },
          { path: 'src/main.ts', line: 3, text: 'needle()' },
        ],
        truncated: false,
        skipped: 1,
      })
      const { matches } = await sandbox.files.search({ text: 'a+b' })
      assert.deepEqual(matches, [{ path: 'src/deep/test.ts', line: 1, text: 'needles a+b' }])
    },

    async 'a regular expression is one only when it is said to be, and a wrong one is refused'(sandbox) {
      await project(sandbox)
      const { matches } = await sandbox.files.search({ text: '^needle\\(?', regex: true })
      assert.deepEqual(
        matches.map(({ path, line }) => [path, line]),
        [
          ['readme.md', 3],
          ['src/deep/test.ts', 1],
          ['src/main.ts', 3],
        ],
      )
      assert.deepEqual((await sandbox.files.search({ text: '^needle' })).matches, [])
      await refused(sandbox.files.search({ text: '(', regex: true }), 'invalid-argument')
      await refused(sandbox.files.search({}), 'invalid-argument')
    },

    async 'a glob finds paths, and narrows a search for text'(sandbox) {
      await project(sandbox)
      const paths = async (glob: string, more = {}) =>
        (await sandbox.files.search({ glob, ...more })).matches.map(({ path }) => path)
      assert.deepEqual(await paths('*.ts'), ['src/deep/test.ts', 'src/main.ts'])
      assert.deepEqual(await paths('src/*.ts'), ['src/main.ts'])
      assert.deepEqual(await paths('**/*.{md,bin}'), ['readme.md', 'src/data.bin'])
      assert.deepEqual(await paths('[r-s]*'), ['readme.md'])
      assert.deepEqual(await paths('*.ts', { path: 'src/deep' }), ['src/deep/test.ts'])
      assert.deepEqual(await paths('*.ts', { path: 'node_modules' }), ['node_modules/x/index.ts'])
      const found = await sandbox.files.search({ text: 'needle', glob: '*.md' })
      assert.deepEqual(found.matches, [{ path: 'readme.md', line: 3, text: 'needle in the readme' }])
    },

    async 'a search starts in a folder or in one file, and stops at its limit'(sandbox) {
      await project(sandbox)
      const inFile = await sandbox.files.search({ text: 'needle', path: 'src/main.ts' })
      assert.deepEqual(
        inFile.matches.map(({ path, line }) => [path, line]),
        [
          ['src/main.ts', 1],
          ['src/main.ts', 3],
        ],
      )
      const some = await sandbox.files.search({ text: 'needle', limit: 2 })
      assert.deepEqual([some.matches.length, some.truncated], [2, true])
      const all = await sandbox.files.search({ text: 'needle', limit: 4 })
      assert.deepEqual([all.matches.length, all.truncated], [4, false])
      await refused(sandbox.files.search({ text: 'x', path: 'nothing' }), 'path-missing')
    },

    async 'a search does not go through links'(sandbox) {
      await output(sandbox, 'ln -s /etc etc; ln -s . self; mkdir in; echo root > in/file')
      const { matches } = await sandbox.files.search({ text: 'root' })
      assert.deepEqual(matches, [{ path: 'in/file', line: 1, text: 'root' }])
    },

    async 'a glob of many stars takes no longer than another'(sandbox) {
      await sandbox.files.write('a'.repeat(200), '')
      assert.deepEqual((await sandbox.files.search({ glob: '*a*a*a*a*a*a*a*b' })).matches, [])
    },

    async 'an expression that would never end is refused'(sandbox) {
      await sandbox.files.write('a', `${'a'.repeat(5000)}!`)
      await refused(sandbox.files.search({ text: '(a+)+$', regex: true }), 'invalid-argument')
    },
  }
}
