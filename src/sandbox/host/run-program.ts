import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Runs a program of the system to its end and returns what it printed; one that fails rejects with what it said. */
export async function runProgram(program: string, args: readonly string[]): Promise<string> {
  const env = { PATH: systemPath(), LC_ALL: 'C' }
  try {
    const { stdout } = await execute(program, [...args], { env, maxBuffer: 2 ** 24 })
    return stdout
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string }
    if (code === 'ENOENT') throw new Error(`there is no program ${program} here`, { cause: error })
    throw new Error(stderr.trim() || (error as Error).message, { cause: error })
  }
}

/** Programs for mounts are often outside the path of ordinary users. */
export function systemPath(): string {
  return `${process.env.PATH ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`
}

/** Copies a folder to where nothing is yet, with modes, times, links and whatever else lies in it. */
export async function copyFolder(from: string, to: string, how: readonly string[] = []): Promise<void> {
  // What leads through this process has to name it: the program that copies is another.
  const paths = [from, to].map(path => path.replace(/^\/proc\/self\//, `/proc/${process.pid}/`))
  await runProgram('cp', ['-a', ...how, '--', ...paths])
}
