import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import { isRunning, temporaryFolder } from './make.ts'

/** A program of its own that runs a command, which says its number and stays. */
async function killedProgram(folder: string): Promise<{ readonly pid: number; readonly left: number }> {
  const driver = join(import.meta.dirname, '../../src/sandbox/drivers/local/driver.ts')
  const program = `
    const { localBackend } = await import(${JSON.stringify(driver)})
    const sandbox = await localBackend().open(${JSON.stringify(folder)})
    for await (const { data } of sandbox.exec('echo $$; exec sleep 600')) process.stdout.write(data)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = new Promise(resolve => child.on('close', resolve))
  const left = await new Promise<number>(resolve =>
    createInterface({ input: child.stdout }).once('line', line => resolve(Number(line))),
  )
  child.kill('SIGKILL')
  await closed
  return { pid: child.pid as number, left }
}

test.skipIf(process.platform !== 'linux')(
  'commands of a killed program are ended by whoever goes on, and those of others are not',
  async () => {
    using folder = temporaryFolder()
    const [one, other] = await Promise.all([killedProgram(folder.path), killedProgram(folder.path)])
    expect([isRunning(one.left), isRunning(other.left)]).toEqual([true, true])
    const { endLeftBy } = localBackend()
    await endLeftBy?.(one.pid)
    expect([isRunning(one.left), isRunning(other.left)]).toEqual([false, true])
    await endLeftBy?.(other.pid)
    expect(isRunning(other.left)).toBe(false)
  },
)
