import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, it } from 'vitest'
import { localBackend } from '../../../src/sandbox/drivers/local/driver.ts'
import { torture } from '../../support/torture.ts'
import { temporaryFolder } from '../make.ts'

/** Swaps a folder for a link to another one and back, until it is told to stop. */
const swap = `
const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
const { workerData, parentPort } = require('node:worker_threads')
const { folder, away, outside } = workerData
const stopped = new Int32Array(workerData.stop)
parentPort.postMessage('ready')
while (Atomics.load(stopped, 0) === 0) {
  renameSync(folder, away)
  symlinkSync(outside, folder)
  unlinkSync(folder)
  renameSync(away, folder)
}
`

it.skipIf(process.platform !== 'linux')(
  'a search does not tell names of files outside while a folder is swapped for a link',
  async () => {
    using place = temporaryFolder()
    const [work, outside] = [join(place.path, 'work'), join(place.path, 'outside')]
    for (const path of [outside, join(work, 'swapped'), join(work, 'many')])
      mkdirSync(path, { recursive: true })
    writeFileSync(join(outside, 'marker-of-the-host.txt'), 'marker')
    writeFileSync(join(work, 'swapped', 'inside.txt'), 'inside')
    // Between the look at the names up here and the one into the folder, a search goes through these.
    for (let i = 0; i < 300; i++) mkdirSync(join(work, 'many', String(i)))
    const stop = new SharedArrayBuffer(4)
    const workerData = { folder: join(work, 'swapped'), away: join(work, 'away'), outside, stop }
    const worker = new Worker(swap, { eval: true, workerData })
    await new Promise(resolve => worker.once('message', resolve))
    await using sandbox = await localBackend().open(work)
    const told = new Set<string>()
    try {
      for (let i = 0; i < torture({ short: 50, full: 500 }); i++) {
        const found = await sandbox.files.search({ glob: '**/*' }).catch(() => undefined)
        for (const { path } of found?.matches ?? []) told.add(path)
      }
    } finally {
      Atomics.store(new Int32Array(stop), 0, 1)
      await worker.terminate()
    }
    expect([...told].filter(path => path.includes('marker'))).toEqual([])
    expect([...told].some(path => path.endsWith('inside.txt'))).toBe(true)
  },
)
