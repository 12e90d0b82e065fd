import { accessSync } from 'node:fs'

/** Whether this process may use a path so: `constants.W_OK` of `node:fs` and the like. */
export function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}
