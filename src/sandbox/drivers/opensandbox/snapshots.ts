import { setTimeout as pause } from 'node:timers/promises'
import type { Sandbox, SnapshotInfo } from '@alibaba-group/opensandbox'
import { RathError, show } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import { SharedCopy } from '../../shared-copy.ts'
import { importClient, statusOf } from './client.ts'

/** How long the server may take to copy a sandbox. */
const patience = 10 * 60 * 1000

/** Keeps the files of a sandbox on the server. Whoever releases it last removes it. */
export async function takeSnapshot({ id, sandboxes, connectionConfig }: Sandbox): Promise<SharedCopy> {
  const name = `openrath-${newId()}`
  let snapshot: SnapshotInfo = await sandboxes.createSnapshot(id, { name })
  const start = performance.now()
  for (let wait = 20; snapshot.status.state !== 'Ready'; wait = Math.min(1000, wait * 2)) {
    const { state, message } = snapshot.status
    if (state === 'Failed' || performance.now() - start > patience) {
      throw new RathError('sandbox-failed', `The snapshot of ${show(id)} is ${state}: ${show(message)}`, {
        data: { snapshot: snapshot.id },
      })
    }
    await pause(wait)
    snapshot = await sandboxes.getSnapshot(snapshot.id)
  }
  return new SharedCopy(snapshot.id, async () => {
    // The sandbox that it was taken of may be closed by now, and its connection with it.
    const { SandboxManager } = await importClient()
    const { domain, apiKey } = connectionConfig
    const manager = SandboxManager.create({ connectionConfig: { domain, ...(apiKey && { apiKey }) } })
    try {
      await manager.deleteSnapshot(snapshot.id)
    } catch (error) {
      if (statusOf(error) !== 404) throw error
    } finally {
      await manager.close()
    }
  })
}
