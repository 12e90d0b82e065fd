import { expect, test } from 'vitest'
import { attacks } from '../sandbox/attack/attacks.ts'
import type { Targets } from '../sandbox/attack/targets.ts'
import { read } from './tree.ts'

test('docs/security.md lists the attacks that the tests make, and no others', () => {
  const section = read('docs/security.md').split('## The attacks that are tried')[1]?.split('\n## ')[0] ?? ''
  const listed = [...section.matchAll(/^- (.+)$/gm)].map(([, name]) => name)
  expect(listed).toEqual(attacks({} as Targets).map(({ name }) => name))
})
