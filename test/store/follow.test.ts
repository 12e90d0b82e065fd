import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { refusal } from '../session/make.ts'
import { temporaryFolder } from './folder.ts'

test('a cursor that no change can have had is refused, and nobody follows', async () => {
  using folder = temporaryFolder()
  for (const url of ['memory:', `sqlite:${join(folder.path, 'rath.db')}`]) {
    await using store = await openStore(url, { secrets: {} })
    for (const cursor of ['nonsense', '', '-1', '1.5', '1:x', 7 as unknown as string]) {
      const error = refusal(() => store.sessions.subscribe(() => {}, { cursor }))
      expect(error.code).toBe('invalid-argument')
      expect(error.message).toContain('is not a cursor')
    }
  }
})
