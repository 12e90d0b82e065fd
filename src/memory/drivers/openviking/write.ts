import { RathError } from '../../../base/errors.ts'
import type { Memory, NewMemory } from '../../spec.ts'
import type { VikingClient } from './client.ts'
import { isRefusal } from './errors.ts'
import { nothing, toFile } from './files.ts'
import { fileOf, ours } from './places.ts'

/** What the server takes in one batch, which it checks as a whole before it writes the first. */
const mostFiles = 256
const largestFile = 8 * 1024 * 1024
const largestBatch = 16 * 1024 * 1024

/** Entries in parts that the server takes at once, with room for what is written beside the texts. */
export function* batchesOf(entries: readonly NewMemory[]): Generator<readonly NewMemory[]> {
  let batch: NewMemory[] = []
  let size = 0
  for (const entry of entries) {
    const own = Buffer.byteLength(entry.text)
    if (batch.length === mostFiles || (batch.length > 0 && size + own > largestBatch / 2)) {
      yield batch
      batch = []
      size = 0
    }
    batch.push(entry)
    size += own
  }
  if (batch.length > 0) yield batch
}

/** Creates files for entries, all or none. False when one of them is there already. */
export async function createFiles(
  client: VikingClient,
  entries: readonly Memory[],
  signal?: AbortSignal,
): Promise<boolean> {
  const operations = entries.map(entry => ({
    uri: fileOf(entry.scope, entry.category, entry.id),
    content: toFile(entry),
    mode: 'create',
  }))
  checkSize(operations.map(({ content }) => Buffer.byteLength(content)))
  const write = () =>
    client.call('POST', '/api/v1/content/batch-write', {
      body: { root_uri: ours, operations, wait: true },
      signal,
    })
  try {
    await write().catch(async error => {
      if (!isRefusal(error, 'NOT_FOUND')) throw error
      await makeRoot(client, signal)
      await write()
    })
    return true
  } catch (error) {
    if (isRefusal(error, 'ALREADY_EXISTS', 'CONFLICT')) return false
    throw error
  }
}

/** Writes an entry over its file, or makes it where it has gone. */
export async function replaceFile(client: VikingClient, entry: Memory, signal?: AbortSignal): Promise<void> {
  const content = toFile(entry)
  checkSize([Buffer.byteLength(content)])
  const uri = fileOf(entry.scope, entry.category, entry.id)
  const write = (mode: 'replace' | 'create') =>
    client.call('POST', '/api/v1/content/write', {
      body: { uri, content, mode, wait: true },
      signal,
      idempotent: mode === 'replace',
      works: true,
    })
  await write('replace').catch(async error => {
    if (!isRefusal(error, 'NOT_FOUND')) throw error
    await write('create')
  })
}

/** Removes a file or, with all that is in it, a folder. */
export async function removeFile(
  client: VikingClient,
  uri: string,
  recursive: boolean,
  signal?: AbortSignal,
): Promise<void> {
  await client.call('DELETE', '/api/v1/fs', { query: { uri, recursive }, signal }).catch(nothing(undefined))
}

async function makeRoot(client: VikingClient, signal?: AbortSignal): Promise<void> {
  await client.call('POST', '/api/v1/fs/mkdir', { body: { uri: ours }, signal }).catch(error => {
    if (!isRefusal(error, 'ALREADY_EXISTS', 'CONFLICT')) throw error
  })
}

function checkSize(sizes: readonly number[]): void {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (sizes.length <= mostFiles && sizes.every(size => size <= largestFile) && total <= largestBatch) return
  throw new RathError(
    'invalid-argument',
    `OpenViking keeps up to ${mostFiles} entries of 8 MiB each and 16 MiB in all at once, not ${sizes.length} ` +
      `entries of ${total} bytes: write them in several calls.`,
    { data: { entries: sizes.length, bytes: total } },
  )
}
