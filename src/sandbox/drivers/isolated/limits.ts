import { readFileSync } from 'node:fs'
import type { IsolatedLimits } from './isolated-spec.ts'

/** More would be of no use to a command, and a great many is a load on the kernel. */
const openFiles = 4096

/**
 * The options of `prlimit`, which runs inside: there the number of processes is counted for the sandbox alone and not for the user. Memory
 * is that of data, since Node reserves far more addresses than it uses.
 */
export function limitOptions(limits: Required<IsolatedLimits>): string[] {
  const wanted: readonly (readonly [option: string, name: string, value: number])[] = [
    ['--data', 'Max data size', limits.memory],
    ['--nproc', 'Max processes', limits.processes],
    ['--fsize', 'Max file size', limits.fileSize],
    ['--cpu', 'Max cpu time', limits.cpuSeconds],
    ['--nofile', 'Max open files', openFiles],
    ['--core', 'Max core file size', 0],
  ]
  const text = readFileSync('/proc/self/limits', 'latin1')
  return wanted.map(([option, name, value]) => {
    // What this process may not have, its commands may not have either.
    const hard = new RegExp(`^${name}\\s+\\S+\\s+(\\d+)`, 'm').exec(text)?.[1]
    return `${option}=${Math.min(value, Number(hard ?? value))}`
  })
}
