import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { localBackend } from '../../src/sandbox/drivers/local/driver.ts'
import { leftCommands } from '../../src/sandbox/drivers/local/left-by.ts'
import { leftFolders } from '../../src/sandbox/host/folder.ts'
import type { ExecHandle } from '../../src/sandbox/spec.ts'
import { isRunning, temporaryFolder } from './make.ts'

/** A program of its own that runs a command, which says its number and stays. */
async function killedProgram(
  folder: string | undefined,
  temporaryFolder?: string,
): Promise<{ readonly mark: string; readonly left: number }> {
  const driver = join(import.meta.dirname, '../../src/sandbox/drivers/local/driver.ts')
  const names = join(import.meta.dirname, '../../src/base/process.ts')
  const program = `
    const { thisMark } = await import(${JSON.stringify(names)})
    const { localBackend } = await import(${JSON.stringify(driver)})
    const sandbox = await localBackend(${JSON.stringify({ temporaryFolder })}).open(${JSON.stringify(folder)})
    for await (const { data } of sandbox.exec('echo $$; exec sleep 600'))
      process.stdout.write(thisMark() + ' ' + data)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = new Promise(resolve => child.on('close', resolve))
  const said = await new Promise<string>(resolve =>
    createInterface({ input: child.stdout }).once('line', resolve),
  )
  const [mark = '', left] = said.split(' ')
  child.kill('SIGKILL')
  await closed
  return { mark, left: Number(left) }
}

test.skipIf(process.platform !== 'linux')(
  'commands of a killed program are ended by whoever goes on, and those of others are not',
  async () => {
    using folder = temporaryFolder()
    const [one, other] = await Promise.all([killedProgram(folder.path), killedProgram(folder.path)])
    expect([isRunning(one.left), isRunning(other.left)]).toEqual([true, true])
    const { endLeftBy } = localBackend()
    await endLeftBy?.(one.mark)
    expect([isRunning(one.left), isRunning(other.left)]).toEqual([false, true])
    await endLeftBy?.(other.mark)
    expect(isRunning(other.left)).toBe(false)
  },
)

test.skipIf(process.platform !== 'linux')(
  'commands and folders of killed programs are found, those of programs that run are not',
  async () => {
    using folder = temporaryFolder()
    const { mark, left } = await killedProgram(undefined, folder.path)
    const mine = await localBackend({ temporaryFolder: folder.path }).open(undefined)
    const running = mine.exec('echo $$; exec sleep 600')
    const line = await firstOutput(running)
    const names = readdirSync(folder.path)
    expect(names).toHaveLength(2)
    const found = leftCommands(0)
    expect(found).toContain(left)
    expect(found).not.toContain(Number(line))
    expect(leftCommands(3_600_000)).not.toContain(left)
    const theirs = names
      .filter(name => name.startsWith(`openrath-${mark}-`))
      .map(name => join(folder.path, name))
    expect(await leftFolders(folder.path)).toEqual(theirs)
    await localBackend().endLeftBy?.(mark)
    await mine.close()
  },
)

async function firstOutput(handle: ExecHandle): Promise<string> {
  for await (const { data } of handle) return new TextDecoder().decode(data)
  return ''
}
