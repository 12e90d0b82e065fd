import { constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isAccessible } from '../../src/base/access.ts'
import { nodeProblem } from '../../src/base/node-version.ts'
import { run } from './run.ts'

const sentence = (version: string) =>
  `openrath needs Node 22.18 or newer, and this is Node ${version}: install a newer Node and run it again.`

test('a Node before 22.18 gets one sentence that says what is needed', () => {
  for (const version of ['18.0.0', '20.20.2', '22.17', '22.17.1']) {
    expect(nodeProblem(version)).toBe(sentence(version))
  }
})

test('Node 22.18 and newer, and places without Node, get none', () => {
  for (const version of ['22.18', '22.18.0', '23.0.0', '24', '24.21.0', '100.0.0', undefined]) {
    expect(nodeProblem(version)).toBeUndefined()
  }
})

describe('an old Node of this machine', () => {
  const old = oldNode()
  if (!old) console.log('no Node older than 22.18 in PATH: the built package was not tried with one')

  const ways = {
    'runs dist/index.js': ['dist/index.js'],
    'imports openrath': ['--input-type=module', '--eval', "import { Session } from 'openrath'; Session"],
    'awaits import()': ['--input-type=module', '--eval', "await import('openrath')"],
    'forgets to await import()': ['--eval', "import('openrath')"],
  }
  for (const [way, args] of Object.entries(ways)) {
    test.skipIf(!old)(`${way}, and prints the sentence and nothing else`, () => {
      const { path, version } = old as Old
      expect(run(path, ...args)).toEqual({ status: 1, stdout: '', stderr: `${sentence(version)}\n` })
    })
  }

  test.skipIf(!old)('can catch the error, and its later errors print as they always do', () => {
    const { path, version } = old as Old
    const program = `import('openrath').catch(error => {
      console.log(error.message)
      setTimeout(() => { throw new Error('later') }, 1)
    })`
    const { status, stdout, stderr } = run(path, '--eval', program)
    expect(stdout).toBe(`${sentence(version)}\n`)
    expect(stderr).toContain('Error: later\n    at ')
    expect(status).toBe(1)
  })
})

interface Old {
  readonly path: string
  readonly version: string
}

/** The machine's own Node when it is too old, past the one that npm scripts put first. */
function oldNode(): Old | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, 'node')
    if (folder.includes('node_modules') || !isAccessible(path, constants.X_OK)) continue
    const version = run(path, '--version').stdout.trim().replace(/^v/, '')
    if (nodeProblem(version)) return { path, version }
  }
  return undefined
}
