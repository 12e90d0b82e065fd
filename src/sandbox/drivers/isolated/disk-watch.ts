import { statfsSync } from 'node:fs'
import type { Launched } from '../../host/command.ts'

/** Milliseconds between looks. What a fast disk takes in that time is less than what is usually left free. */
const pause = 100
/** So many files can still be made when a command is ended. */
const filesLeft = 10_000

interface Free {
  readonly bytes: number
  readonly files: number
}

/**
 * Ends a command that leaves less than this free on a disk that it writes to, so that the rest of the machine goes on. Where less is free when it
 * starts, half of that is what it has to leave.
 */
export function endWhenFull(launched: Launched, folders: readonly string[], bytesLeft: number): Launched {
  const disks = folders.map(folder => ({ folder, floor: floorOf(freeIn(folder), bytesLeft) }))
  let isFull = false
  const look = () => {
    isFull = disks.some(({ folder, floor }) => isBelow(freeIn(folder), floor))
    if (!isFull) return
    stop()
    launched.kill()
  }
  const timer = setInterval(look, pause).unref()
  const stop = () => clearInterval(timer)
  launched.child.once('exit', stop).once('error', stop)
  return {
    ...launched,
    failure: (exitCode, stderr) => (isFull ? undefined : launched.failure?.(exitCode, stderr)),
    lastWords: () =>
      isFull
        ? 'The command was ended: the disk was almost full. Remove what it wrote.\n'
        : (launched.lastWords?.() ?? ''),
  }
}

function floorOf({ bytes, files }: Free, bytesLeft: number): Free {
  return {
    bytes: bytes > bytesLeft ? bytesLeft : bytes / 2,
    files: files > filesLeft ? filesLeft : files / 2,
  }
}

function isBelow(free: Free, floor: Free): boolean {
  return free.bytes < floor.bytes || free.files < floor.files
}

/** Of what ordinary users may take. Some disks do not count files, and a folder that is gone takes none. */
function freeIn(folder: string): Free {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(folder)
    return { bytes: bavail * bsize, files: files === 0 ? Number.POSITIVE_INFINITY : ffree }
  } catch {
    return { bytes: Number.POSITIVE_INFINITY, files: Number.POSITIVE_INFINITY }
  }
}
