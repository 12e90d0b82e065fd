import { expect, test } from 'vitest'
import { run } from './run.ts'
import { filesUnder } from './tree.ts'

/** Lines that each example must print, ids and times left out. */
const lines: Record<string, readonly string[]> = {
  '02-lineage.ts': [
    '   asked has 1 chunk; placed has 2 and works on local',
    '   bold  5 chunks  "Every agent leaves a trail. Read it."',
    '   2 chunks shared; then 3 on calm and 3 on bold',
    '   11 merge             concat of calm, bold, plain',
    '   360 tokens in all',
    '   rewound has 2 chunks; retold says "Sessions flow, agents come and go."; merged still has 12',
    '   same head: true; parents: 0',
    '   flowchart TD',
    '     s7 --> s8',
    '   14 lines; same head: true; ok: true',
  ],
}

test('every example is checked here', () => {
  expect(filesUnder('examples', '.ts')).toEqual(Object.keys(lines).sort())
})

for (const [name, expected] of Object.entries(lines)) {
  test(`examples/${name} runs without a key, says what it should and nothing on stderr`, () => {
    const { status, stdout, stderr } = run(process.execPath, `examples/${name}`)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual(expect.arrayContaining([...expected]))
    expect(stdout).not.toMatch(/undefined|\[object|NaN/)
  })
}

test('examples/02-lineage.ts finds the line that was tampered with', () => {
  const { stdout } = run(process.execPath, 'examples/02-lineage.ts')
  expect(stdout).toMatch(
    /ok: false; chunk 5 \(assistant\) is recorded as \w{8}… and its content gives \w{8}…\n$/,
  )
})
