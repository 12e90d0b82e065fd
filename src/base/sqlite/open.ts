import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

/** SQLite waits for other connections no longer than this by itself, because it blocks the process meanwhile. */
const shortWaitMs = 100

export async function openDatabase(path: string | URL, { readOnly = false } = {}): Promise<DatabaseSync> {
  const { DatabaseSync } = await importSqlite()
  return new DatabaseSync(path, { readOnly, timeout: shortWaitMs })
}

/** Makes the file readable by its owner only, in a private folder. `home` is a folder on the way that git shall ignore. */
export function createFile(path: string, home: string | undefined): void {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (home !== undefined && !existsSync(`${home}/.gitignore`)) writeFileSync(`${home}/.gitignore`, '*\n')
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  // SQLite would only say that it cannot open the file.
  for (const place of [folder, path]) accessSync(place, constants.W_OK)
}

/** `full` survives a power cut; `normal` every crash of the process. */
export function setDurability(db: DatabaseSync, durability: 'normal' | 'full'): void {
  db.exec(
    // Without fullfsync, macOS leaves what it calls written in the disk's own memory; elsewhere it changes nothing.
    durability === 'full'
      ? 'PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON'
      : 'PRAGMA synchronous = NORMAL',
  )
}

/** Node 22 warns that its SQLite is experimental; what this library uses of it is stable since, so that one warning is kept back. */
async function importSqlite(): Promise<typeof import('node:sqlite')> {
  const { emitWarning } = process
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    const text = typeof warning === 'string' ? warning : warning.message
    if (!text.includes('SQLite is an experimental feature'))
      Reflect.apply(emitWarning, process, [warning, ...rest])
  }) as typeof process.emitWarning
  try {
    return await import('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}
