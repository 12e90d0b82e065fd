import { join } from 'node:path'
import type { Durability } from '../../../src/store/spec.ts'
import { runFile } from '../program.ts'
import type { Acknowledged } from './acknowledged.ts'

export interface Kills {
  readonly url: string
  readonly kills: number
  /** Writers at a time. */
  readonly lanes: number
  readonly acknowledged: Acknowledged
  /** Of the writers; each in turn by default. */
  readonly durability?: Durability
  /** After each kill, with how many there were. */
  onKill?(count: number): void
}

/**
 * Runs writer.ts again and again and kills it with SIGKILL: while it opens the store, or right after an
 * acknowledgement chosen by chance, with others of its own under way. Returns how many were killed while writing.
 */
export async function killRepeatedly(options: Kills): Promise<number> {
  const { url, kills, lanes, acknowledged, onKill } = options
  let begun = 0
  let ended = 0
  let writing = 0
  const stop = (error: unknown): never => {
    begun = kills
    throw error
  }
  const lane = async () => {
    while (begun < kills) {
      const number = begun++
      const killAfter = number % 8 === 0 ? 0 : 1 + Math.floor(Math.random() * 150)
      const durability = options.durability ?? (number % 2 === 0 ? 'full' : 'normal')
      const args = [url, durability, String(number)]
      if (await killOnce(args, killAfter, acknowledged).catch(stop)) writing++
      onKill?.(++ended)
    }
  }
  const lanesEnded = await Promise.allSettled(Array.from({ length: lanes }, lane))
  for (const end of lanesEnded) if (end.status === 'rejected') throw end.reason
  return writing
}

async function killOnce(
  args: readonly string[],
  killAfter: number,
  acknowledged: Acknowledged,
): Promise<boolean> {
  const writer = runFile(join(import.meta.dirname, 'writer.ts'), ...args)
  let count = 0
  for await (const line of writer.lines()) {
    if (acknowledged.add(line)) count++
    if (count >= killAfter) writer.child.kill('SIGKILL')
  }
  const end = await writer.ended()
  if (end !== 'SIGKILL') throw new Error(`writer ${args[2]} ended by itself: ${end}`)
  return count > 0
}
