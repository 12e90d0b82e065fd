import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../base/ids.ts'
import type { Json } from '../../base/json.ts'
import { ownFolder } from '../../model/project-config.ts'
import { processSurroundings } from '../../model/surroundings.ts'

/** Where the code of a run is found again. */
export interface RunModule {
  /** A path, from the current folder if it is not absolute. */
  readonly file: string
  /** The name under which it exports the workflow; `default` by default. */
  readonly export?: string
  /** What `rath run --model` named: a model, or a file that exports one. `rath resume` and `rath replay` use it. */
  readonly model?: string
}

/**
 * What a run's row says of its code, with a mark that only this user's programs can make: a store may have come with a folder, or been written by
 * whoever could write into it, and the code that such a record names is not loaded unasked. Without a place for the key there is no mark.
 */
export function sealed({ file, export: name, model }: RunModule): RunModule & { readonly seal?: string } {
  const module = { file, ...(name !== undefined && { export: name }), ...(model !== undefined && { model }) }
  const key = keyHere('make')
  return key === undefined ? module : { ...module, seal: sealOf(module, key) }
}

/** Whether a run of this user wrote it. */
export function isSealed(module: Json | undefined): boolean {
  const { seal, ...code } = (module ?? {}) as Partial<RunModule> & { readonly seal?: unknown }
  const { file } = code
  const key = keyHere('read')
  if (typeof file !== 'string' || typeof seal !== 'string' || key === undefined) return false
  const expected = Buffer.from(sealOf({ ...code, file }, key))
  const found = Buffer.from(seal)
  return found.length === expected.length && timingSafeEqual(found, expected)
}

function sealOf({ file, export: name = 'default', model }: RunModule, key: Buffer): string {
  return createHmac('sha256', key)
    .update(JSON.stringify(['code of a run', file, name, ...(model === undefined ? [] : [model])]))
    .digest('hex')
}

/** A key of 32 bytes in the user's own folder, for nobody else to read. */
function keyHere(how: 'make' | 'read'): Buffer | undefined {
  try {
    const folder = ownFolder(processSurroundings())
    const path = join(folder, 'runs.key')
    const found = read(path)
    if (found !== undefined || how === 'read') return found
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const written = `${path}.${newId()}`
    writeFileSync(written, randomBytes(32), { mode: 0o600, flag: 'wx' })
    try {
      // The first to name it decides, and nobody reads half of it.
      linkSync(written, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(written, { force: true })
    }
    return read(path)
  } catch {
    return undefined
  }
}

function read(path: string): Buffer | undefined {
  try {
    const key = readFileSync(path)
    return key.length === 32 ? key : undefined
  } catch {
    return undefined
  }
}
