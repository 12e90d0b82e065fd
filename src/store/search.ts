import { RathError, show } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import type { ChunkBody, ChunkKind } from '../session/chunk.ts'
import { isBytes, isOwn } from './chunk-fields.ts'
import type { FoundRow, StoreDriver } from './driver.ts'
import { decodeAll, decodePreview } from './encode.ts'
import { checkLimit } from './page.ts'
import type { SearchHit, SearchOptions } from './spec.ts'
import { firstPlace, indexWords, queryWords, snippetOf } from './words.ts'

const batch = 1000

/**
 * Full-text search. The index is brought up to date here and not while appending, so that an append pays nothing for it; a
 * search pays once for what was added since the last.
 */
export async function searchChunks(
  driver: StoreDriver,
  query: string,
  options: SearchOptions = {},
): Promise<readonly SearchHit[]> {
  if (typeof query !== 'string')
    throw new RathError('invalid-argument', `A search query is text, not ${show(query)}.`)
  const limit = checkLimit(options.limit, 20)
  const words = queryWords(query)
  if (words.length === 0) return []
  await catchUp(driver)
  const found = await findReached(driver, words, options.kind, limit)
  return Promise.all(found.map(row => hitOf(driver, row, words)))
}

/** Chunks that no session reaches any more wait for gc, and are not told. */
async function findReached(
  driver: StoreDriver,
  words: readonly string[],
  kind: ChunkKind | undefined,
  limit: number,
): Promise<FoundRow[]> {
  for (let asked = limit; ; asked *= 4) {
    const found = await driver.search(words, kind, asked)
    const reached = found.filter(row => row.session !== '')
    if (reached.length >= limit || found.length < asked) return reached.slice(0, limit)
  }
}

async function hitOf(driver: StoreDriver, row: FoundRow, words: readonly string[]): Promise<SearchHit> {
  const body = decodePreview(row.body) as unknown as ChunkBody
  let said = saidIn(body as unknown as Json)
  if (firstPlace(said, words) === undefined) {
    // The match lies in a payload that is out of line, behind its preview.
    const [whole] = await decodeAll([row.body], ids => driver.blobs(ids))
    said = saidIn(whole as Json)
  }
  return {
    chunk: row.id,
    session: row.session,
    index: row.index,
    kind: body.kind,
    ...(body.by !== undefined && { by: body.by }),
    at: body.at,
    snippet: snippetOf(said, words),
  }
}

async function catchUp(driver: StoreDriver): Promise<void> {
  for (;;) {
    const rows = await driver.unindexed(batch)
    if (rows.length === 0) return
    const bodies = await decodeAll(
      rows.map(row => row.body),
      ids => driver.blobs(ids),
    )
    await driver.index(rows.map((row, i) => ({ id: row.id, words: indexWords(saidIn(bodies[i] as Json)) })))
    if (rows.length < batch) return
  }
}

/** Fields of a chunk that hold digests and provider ids: nothing that anybody said or did. */
const unsaid = new Set([
  ...['id', 'callId', 'kind', 'type', 'mediaType', 'at', 'durationMs'],
  ...['origin', 'prompt', 'tree', 'replaced', 'ancestor', 'head'],
])

/** Every text in a chunk, in order. */
function saidIn(chunk: Json): string {
  const said: string[] = []
  const visit = (value: Json, own: boolean) => {
    if (typeof value === 'string' || typeof value === 'number') said.push(String(value))
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) {
      if (own || isOwn(name)) {
        if (!isBytes(name, value)) visit(member, true)
      } else if (!unsaid.has(name) && !(name === 'from' && Array.isArray(member))) visit(member, false)
    }
  }
  visit(chunk, false)
  return said.filter(Boolean).join('\n')
}
