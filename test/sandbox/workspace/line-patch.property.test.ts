import { applyPatch, createTwoFilesPatch } from 'diff'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { linePatch } from '../../../src/sandbox/workspace/line-patch.ts'

const names = ['a/f', 'b/f'] as const
/** Few different lines, so that they repeat, and perhaps a last one without an end. */
const text = fc
  .array(fc.constantFrom('a\n', 'b\n', 'c\r\n', '\n', 'd\n', 'e\n'), { maxLength: 40 })
  .chain(lines => fc.constantFrom('', 'end', 'a').map(end => lines.join('') + end))
/** The same text with some lines replaced: what an edit leaves. */
const edited = fc
  .tuple(text, fc.array(fc.tuple(fc.nat(40), fc.constantFrom('x\n', 'a\n', '')), { maxLength: 4 }))
  .map(([old, edits]): [string, string] => {
    const lines = old.split(/(?<=\n)/)
    for (const [at, line] of edits) if (at < lines.length) lines[at] = line
    return [old, lines.join('')]
  })
const pairs = fc.oneof(fc.tuple(text, text), edited)

const count = (patch: string | undefined) => (patch ?? '').split('\n').filter(isChange).length
const isChange = (line: string) => /^[-+]/.test(line) && !/^(---|\+\+\+) /.test(line)

test('a patch makes one text of the other, and is as short as one that compares every line', () => {
  fc.assert(
    fc.property(pairs, ([old, now]) => {
      const patch = linePatch(names, old, now)
      if (old === now) {
        expect(patch).toBeUndefined()
        return
      }
      expect(applyPatch(old, patch as string)).toBe(now)
      const plain = createTwoFilesPatch(...names, old, now, undefined, undefined, { context: 3 })
      expect(count(patch)).toBe(count(plain))
    }),
    { numRuns: 1_000 },
  )
})

test('changes that are close are one hunk, those that are far are two', () => {
  const lines = Array.from({ length: 30 }, (_, n) => `${n}\n`)
  const changed = (...at: number[]) => lines.map((line, n) => (at.includes(n) ? 'new\n' : line)).join('')
  const hunks = (now: string) => linePatch(names, lines.join(''), now)?.match(/^@@.*$/gm)
  expect(hunks(changed(10, 17))).toEqual(['@@ -8,14 +8,14 @@'])
  expect(hunks(changed(10, 18))).toEqual(['@@ -8,7 +8,7 @@', '@@ -16,7 +16,7 @@'])
  expect(hunks(changed(0))).toEqual(['@@ -1,4 +1,4 @@'])
  expect(hunks(changed(29))).toEqual(['@@ -27,4 +27,4 @@'])
})

test('a text that is written anew is all removed and all added; one that is too long has no patch', () => {
  const text = (word: string, length: number) => Array.from({ length }, (_, n) => `${word} ${n}\n`).join('')
  const patch = linePatch(names, text('old', 2_000), text('new', 2_000))
  expect(count(patch)).toBe(4_000)
  expect(applyPatch(text('old', 2_000), patch as string)).toBe(text('new', 2_000))
  expect(linePatch(names, text('old', 3_000), text('new', 3_000))).toBeUndefined()
})

test('a text whose lines stand elsewhere by the thousand is all removed and all added, but for its ends', () => {
  const lines = Array.from({ length: 1_500 }, (_, n) => `${n}\n`)
  const [old, now] = [lines, lines.toReversed()].map(middle => `first\n${middle.join('')}last\n`)
  const patch = linePatch(names, old as string, now as string)
  expect(applyPatch(old as string, patch as string)).toBe(now)
  expect(count(patch)).toBe(3_000)
  expect(patch).toMatch(/^@@ -1,1502 \+1,1502 @@\n first\n-0\n/m)
})
