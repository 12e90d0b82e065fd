import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isFullLength } from '../support/torture.ts'

const repository = join(import.meta.dirname, '../..')
const isRoot = process.getuid?.() === 0

describe('the tests of branches again', () => {
  // Mounted in a namespace of their own: nobody else sees the disks, and they go with the tests.
  const onDisk = `
    truncate -s 400M "$1/image"
    "mkfs.$2" $3 "$1/image" >/dev/null
    mkdir "$1/disk"
    mount -t "$2" -o loop "$1/image" "$1/disk"
    export OPENRATH_FORK_DISK="$1/disk"
    shift 3
    exec "$@"`
  const disks = [
    { disk: 'btrfs', options: '-q', method: 'btrfs' },
    ...(isFullLength ? [{ disk: 'btrfs', options: '-q', method: 'reflink' }] : []),
    { disk: 'xfs', options: '-q', method: 'reflink' },
  ]

  test.for(disks)('by $method on a disk of $disk', ({ disk, options, method }, { skip }) => {
    using folder = temporary()
    const inside = ['unshare', '--mount', 'sh', '-ec', onDisk, 'sh', folder.path, disk, options]
    const problem = isRoot ? attempt([...inside, 'true']) : 'only root mounts an image of a disk'
    if (problem) console.log(`not tested: ${method} on ${disk}, because ${problem}`)
    if (problem) return skip(problem)
    rmSync(folder.path, { recursive: true })
    using fresh = temporary()
    const command = inside.map(part => (part === folder.path ? fresh.path : part))
    runTests(command, fresh.path, { OPENRATH_FORK_METHODS: method })
  })

  test('as an ordinary user', ({ skip }) => {
    using folder = temporary()
    const user = 54_321
    if (isRoot) chownSync(folder.path, user, user)
    const become = ['setpriv', '--reuid', `${user}`, '--regid', `${user}`, '--clear-groups']
    const readable = `${repository}/node_modules/vitest/vitest.mjs`
    const problem = isRoot
      ? attempt([...become, 'unshare', '-rm', 'cat', readable])
      : 'the others were run by one'
    if (problem) console.log(`not tested: branches of an ordinary user, because ${problem}`)
    if (problem) return skip(problem)
    const methods = { OPENRATH_FORK_METHODS: 'overlay,copy' }
    runTests(become, folder.path, { ...methods, OPENRATH_FORK_DISK: folder.path, TMPDIR: folder.path })
  })
})

/** Runs the other file in a process that `command` starts, and expects every test to pass, some of each method among them. */
function runTests(
  command: readonly string[],
  folder: string,
  environment: Record<string, string> & { readonly OPENRATH_FORK_METHODS: string },
): void {
  const asksOverlay = environment.OPENRATH_FORK_METHODS.includes('overlay')
  const report = join(folder, 'report.json')
  const vitest = [process.execPath, join(repository, 'node_modules/vitest/vitest.mjs'), 'run']
  const how = ['--configLoader', 'runner', '--reporter', 'json', '--outputFile', report]
  const [program = '', ...args] = [
    ...command,
    ...vitest,
    ...how,
    '--project',
    'sandbox',
    'sandbox/fork.test.ts',
  ]
  const { stdout, stderr } = spawnSync(program, args, {
    cwd: repository,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: folder, ...environment },
  })
  expect(existsSync(report), `${stdout}\n${stderr}`).toBe(true)
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
  const tests = testResults.flatMap(file => file.assertionResults)
  // Those of overlays alone are left out where another method is asked for.
  const left = tests.filter(({ ancestorTitles: [title] }) => title !== 'overlay alone' || asksOverlay)
  expect(left.filter(({ status }) => status !== 'passed')).toEqual([])
  const methods = new Set(tests.flatMap(({ ancestorTitles }) => ancestorTitles))
  expect([...methods]).toEqual(expect.arrayContaining(environment.OPENRATH_FORK_METHODS.split(',')))
  expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain(folder)
}

interface Report {
  readonly testResults: readonly { readonly assertionResults: readonly Result[] }[]
}

interface Result {
  readonly status: string
  readonly ancestorTitles: readonly string[]
  readonly failureMessages: readonly string[]
}

/** Why a command cannot be run, or nothing. */
function attempt([program = '', ...args]: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 ? undefined : error?.message || stderr.trim() || `${program} ends with ${status}`
}

function temporary(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'openrath-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
