import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type MergedLines, mergeLines } from '../../../src/sandbox/workspace/merge-lines.ts'
import { torture } from '../../support/torture.ts'
import { temporaryFolder } from '../make.ts'

const git = spawnSync('git', ['--version']).status === 0
if (!git) console.warn('Merges are not compared with git, which is not installed.')

const labels = { ours: 'ours', base: 'base', theirs: 'theirs' }
type Side = keyof typeof labels
/** `OPENRATH_CASES=2000` for all of them; a case costs the start of a process. */
const cases = torture({ short: 120, full: 1000 })

function byGit(folder: string, texts: Record<Side, Buffer>): MergedLines {
  for (const [side, text] of Object.entries(texts)) writeFileSync(join(folder, side), text)
  const names = ['ours', 'base', 'theirs'].flatMap(name => ['-L', name])
  const env = { PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }
  const args = ['merge-file', '-p', '-q', ...names, 'ours', 'base', 'theirs']
  const { stdout, status } = spawnSync('git', args, { cwd: folder, env })
  return { content: stdout, conflicts: status ?? -1 }
}

/** Numbers that are the same on every machine. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
}

function sides(next: (below: number) => number): Record<Side, Buffer> {
  const words = ['größer ', 'word ', '\tif (x) ', 'é ']
  const line = () => ['', '}', '  {'][next(10)] ?? `${words[next(4)]}${next(60)}`
  const end = next(4) === 0 ? '\r\n' : '\n'
  const base = Array.from({ length: next(30) }, line)
  const edited = () => {
    const lines = [...base]
    for (let edits = next(4); edits > 0; edits--) {
      const at = next(lines.length + 1)
      const added = Array.from({ length: next(4) }, line)
      lines.splice(at, next(4), ...added)
    }
    return lines
  }
  const encoding = next(3) === 0 ? 'latin1' : 'utf8'
  const text = (lines: string[]) =>
    Buffer.from(lines.join(end) + (lines.length > 0 && next(5) > 0 ? end : ''), encoding)
  return { base: text(base), ours: text(edited()), theirs: text(edited()) }
}

test.runIf(git)(`${cases} random merges are those of git merge-file, byte for byte`, () => {
  using place = temporaryFolder()
  mkdirSync(join(place.path, 'git'))
  const next = numbers(20261116)
  let conflicts = 0
  for (let i = 0; i < cases; i++) {
    const texts = sides(next)
    const [found, expected] = [mergeLines(texts, labels), byGit(join(place.path, 'git'), texts)]
    if (expected.conflicts > 0) conflicts++
    const shown = ({ content, conflicts }: MergedLines) => `${conflicts}: ${content.toString('latin1')}`
    expect(shown(found), `case ${i}`).toBe(shown(expected))
  }
  expect(conflicts).toBeGreaterThan(cases / 10)
})

const merged = (base: string, ours: string, theirs: string) => {
  const { content, conflicts } = mergeLines(
    { base: Buffer.from(base), ours: Buffer.from(ours), theirs: Buffer.from(theirs) },
    labels,
  )
  return [content.toString(), conflicts]
}

test('changes that touch conflict, and what both sides agree on is outside the markers', () => {
  expect(merged('a\nb\n', 'A\nb\n', 'a\nB\n')).toEqual([
    '<<<<<<< ours\nA\nb\n=======\na\nB\n>>>>>>> theirs\n',
    1,
  ])
  expect(merged('a\nb\nc\n', 'A\nb\nc\n', 'a\nb\nC\n')).toEqual(['A\nb\nC\n', 0])
  expect(merged('1\n2\n', 'x\n1\n', 'x\n1\n')).toEqual(['x\n1\n', 0])
})

test('a missing newline at the end and Windows line ends stay what they are', () => {
  expect(merged('a\r\nb\r\nc', 'A\r\nb\r\nc', 'a\r\nb\r\nC')).toEqual(['A\r\nb\r\nC', 0])
  expect(merged('a\r\nb\r\n', 'a\r\nours', 'a\r\ntheirs')).toEqual([
    'a\r\n<<<<<<< ours\r\nours\r\n=======\r\ntheirs\r\n>>>>>>> theirs\r\n',
    1,
  ])
})

test('a text of many equal lines, and two texts with nothing in common, take seconds at most', () => {
  const same = '}\n'.repeat(20_000)
  const other = (name: string) => Array.from({ length: 30_000 }, (_, i) => `${name} ${i}\n`).join('')
  const spent = process.cpuUsage()
  expect(merged(same, `a\n${same}`, `${same}c\n`)).toEqual([`a\n${same}c\n`, 0])
  expect(merged(other('a'), other('b'), other('c'))[1]).toBe(1)
  // A comparison of every line with every other takes minutes.
  expect(process.cpuUsage(spent).user / 1000).toBeLessThan(30_000)
})
