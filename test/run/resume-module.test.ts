import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { RunModule } from '../../src/run/replay/resume.ts'
import { fresh, say } from './journal/make.ts'
import { agentWith, failureOf } from './make.ts'

const folder = mkdtempSync(join(tmpdir(), 'openrath-module-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(import.meta.dirname, 'journal', 'awaiting.ts')

/** A run that failed at its first model call, and says that its code is there. */
async function failedRun(module: RunModule) {
  const { runtime } = await fresh()
  const broken = agentWith([{ error: { status: 400 } }])
  const pending = runtime.run(broken.agent, say(), { module })
  await failureOf(pending)
  return { runtime, run: pending.runId }
}

it('a run goes on with the class or the workflow that its TypeScript file exports, which may await at its top', async () => {
  for (const module of [{ file }, { file, export: 'instance' }]) {
    const { runtime, run } = await failedRun(module)
    expect((await runtime.resume(run)).text).toBe('I am openrath.')
  }
})

it('a run is told what is wrong with the file that it names', async () => {
  const broken = join(folder, 'broken.ts')
  writeFileSync(broken, 'export default await Promise.reject(new Error("no network today"))')
  const messages: [RunModule, string][] = [
    [{ file: broken }, `${broken}: no network today`],
    [{ file: join(folder, 'gone.ts') }, 'gone.ts'],
    [{ file, export: 'notes' }, 'exports no workflow as "notes"'],
    [{ file, export: 'other' }, 'exports no workflow as "other", but undefined'],
  ]
  for (const [module, message] of messages) {
    const { runtime, run } = await failedRun(module)
    const error = await failureOf(runtime.resume(run))
    expect(error).toMatchObject({ code: 'invalid-argument', message: expect.stringContaining(message) })
    // It is nobody's yet: whoever has the workflow goes on with it.
    expect((await runtime.resume(run, agentWith(['Done.']).agent)).text).toBe('Done.')
  }
})

it('the code that a record names is loaded unasked only when a run of this user wrote it', async () => {
  const home = process.env.OPENRATH_HOME
  const other = mkdtempSync(join(tmpdir(), 'openrath-other-'))
  const { runtime, run } = await failedRun({ file })
  try {
    process.env.OPENRATH_HOME = other
    const error = await failureOf(runtime.resume(run))
    expect(error).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringContaining('no run of this user wrote that'),
      data: { run, file },
    })
  } finally {
    process.env.OPENRATH_HOME = home
    rmSync(other, { recursive: true })
  }
  expect((await runtime.resume(run)).text).toBe('I am openrath.')
})
