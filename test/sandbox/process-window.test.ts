import { describe, expect, test } from 'vitest'
import { ProcessWindow } from '../../src/sandbox/drivers/local/process-window.ts'

/** A machine that gave out a number last, and has made so many processes. */
function machine(last: number, made: number) {
  const files: Record<string, string> = { '/proc/sys/kernel/pid_max': '32768\n' }
  const set = (last: number, made: number) => {
    files['/proc/loadavg'] = `0.10 0.20 0.30 1/100 ${last}\n`
    files['/proc/stat'] = `cpu 1 2 3\nprocesses ${made}\nprocs_running 1\n`
  }
  set(last, made)
  return { files, set, read: (path: string) => files[path] ?? '' }
}

const running = [1, 400, 20_000, 20_001, 20_005, 31_000]

describe('processes started since a moment', () => {
  test('are those with the numbers given out since', () => {
    const { set, read } = machine(20_000, 500)
    const window = new ProcessWindow(read)
    set(20_005, 505)
    expect(running.filter(window.filter())).toEqual([20_001, 20_005])
  })

  test('are found when the numbers began again', () => {
    const { set, read } = machine(20_004, 500)
    const window = new ProcessWindow(read)
    set(450, 500 + 13_000)
    expect(running.filter(window.filter())).toEqual([1, 400, 20_005, 31_000])
  })

  test('may be any when so many were made that the numbers may have come round', () => {
    const { set, read } = machine(20_000, 500)
    const window = new ProcessWindow(read)
    set(20_005, 500 + 16_384)
    expect(running.filter(window.filter())).toEqual(running)
  })

  test('may be any where the system does not say', () => {
    const { files, read } = machine(20_000, 500)
    const window = new ProcessWindow(read)
    delete files['/proc/loadavg']
    expect(running.filter(window.filter())).toEqual(running)
  })
})
