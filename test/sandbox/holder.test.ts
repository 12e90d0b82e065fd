import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const holder = join(import.meta.dirname, '../../src/sandbox/workspace/fork/holder.ts')
const canUnshare = spawnSync('unshare', ['--user', '--map-root-user', '--mount', 'true']).status === 0

test('a program that closes a holder of mounts, and does nothing else, gets to its next line', context => {
  if (!canUnshare) return context.skip('this machine lets nobody make a mount namespace')
  const program = `
    import { Holder } from ${JSON.stringify(holder)}
    const held = await Holder.start('/')
    // It outlives the shell for a moment, and has its output.
    await held.run('sleep 0.3 &')
    await held.close()
    console.log('closed')`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'closed\n' })
})
