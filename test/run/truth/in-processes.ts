import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createRuntime } from '../../../src/run/runtime.ts'
import type { Store } from '../../../src/store/spec.ts'
import { type Driven, drive, type End, type Weather } from './drive.ts'
import type { Plan } from './plan.ts'

/** Drives a program that works on files, each life of it a process of its own, cut off by SIGKILL. */
export async function driveProcesses(
  plan: Plan,
  weather: Weather,
  folder: string,
  open: () => Promise<Store>,
): Promise<Driven> {
  mkdirSync(join(folder, 'project'), { recursive: true })
  writeFileSync(join(folder, 'project', 'readme.txt'), 'Nothing yet.\n')
  writeFileSync(join(folder, 'ledger.txt'), '')
  writeFileSync(join(folder, 'program.json'), JSON.stringify({ plan, weather }))
  const live = async (life: number): Promise<End> => {
    const program = [join(import.meta.dirname, 'worker.ts'), folder, `${life}`]
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...program], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const closed = new Promise<[number | null, NodeJS.Signals | null]>(resolve =>
      child.on('close', (code, signal) => resolve([code, signal])),
    )
    const [said, complaint, [code, signal]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      closed,
    ])
    if (signal === 'SIGKILL') return 'cut'
    if (code === 0) return said as End
    throw new Error(`life ${life} ended with ${code ?? signal}: ${complaint}`)
  }
  await using store = await open()
  await using runtime = createRuntime({ store, workspaces: join(folder, 'workspaces') })
  const ledger = () => readFileSync(join(folder, 'ledger.txt'), 'utf8').split('\n').filter(Boolean)
  return await drive({ run: 'run', live, ledger, runtime })
}
