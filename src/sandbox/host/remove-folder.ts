import { chmodSync, readdirSync, rmSync } from 'node:fs'
import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Removes a folder of ours, whatever commands have made of it: package managers write folders that nobody may write into. */
export async function removeFolder(path: string): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 })
  try {
    await remove()
  } catch {
    await makeWritable(path)
    await remove()
  }
}

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700).catch(() => {})
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await makeWritable(join(folder, entry.name))
}

/** The same when this process exits and nothing can be awaited. */
export function removeFolderSync(path: string): void {
  const remove = () => rmSync(path, { recursive: true, force: true })
  try {
    remove()
  } catch {
    makeWritableSync(path)
    remove()
  }
}

function makeWritableSync(folder: string): void {
  try {
    chmodSync(folder, 0o700)
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) makeWritableSync(join(folder, entry.name))
    }
  } catch {
    // Removed meanwhile, or owned by another user: whatever can be removed is.
  }
}
