import { isPlainObject } from '../../../base/json.ts'
import { fits } from '../../entry.ts'
import type { FindOptions, Found, Hit, MemoryFilter } from '../../spec.ts'
import type { VikingClient } from './client.ts'
import { nothing, readAt } from './files.ts'
import {
  folderOf,
  homeward,
  memories,
  placeOf,
  resourceFolder,
  resources,
  sharedResources,
} from './places.ts'

interface Matched {
  readonly uri: string
  readonly score: number
}

type FindResult = Readonly<Partial<Record<'memories' | 'resources', readonly Matched[]>>>

/** More than this cannot be asked for. */
const mostMatches = 100
/** The level of files; above them are the summaries of folders. */
const files = 2

/** By meaning, as the server does it; what the server cannot filter by is filtered here, of up to a hundred matches. */
export async function findOn(
  client: VikingClient,
  query: string,
  options: FindOptions & { readonly limit: number; readonly floor: number },
  retrieval: 'find' | 'search',
): Promise<Found> {
  const { limit, floor, signal, ...filter } = options
  const result = await client
    .call<FindResult>('POST', `/api/v1/search/${retrieval}`, {
      body: {
        query,
        target_uri: targetsOf(filter),
        limit: mostMatches,
        score_threshold: floor,
        level: files,
      },
      signal,
      idempotent: true,
      shape: isFindResult,
    })
    .catch(nothing<FindResult>({}))
  const matches = [...(result.memories ?? []), ...(result.resources ?? [])]
    .filter(({ uri, score }) => score >= floor && placeOf(uri) !== undefined)
    .sort((a, b) => b.score - a.score)
  const hits: Hit[] = []
  for (const { uri, score } of matches) {
    if (hits.length === limit) break
    const entry = await readAt(client, homeward(uri), signal)
    if (entry && fits(entry, filter)) hits.push({ ...entry, score: Math.min(1, Math.max(0, score)) })
  }
  return { hits, mode: 'vectors' }
}

function isFindResult(result: unknown): boolean {
  if (!isPlainObject(result)) return false
  return [result.memories ?? [], result.resources ?? []].every(
    matches => Array.isArray(matches) && matches.every(match => typeof match?.uri === 'string'),
  )
}

/** The folders that hold everything of the scopes asked for. */
export function targetsOf({ scope }: MemoryFilter): string[] {
  if (scope === undefined) return [memories, resources, sharedResources]
  return [...new Set([scope].flat().flatMap(one => foldersOf(one)))]
}

function foldersOf(scope: string): string[] {
  if (scope === 'user') return [memories]
  if (scope === 'resource') return [folderOf(scope), resources, sharedResources]
  if (!scope.startsWith('resource/')) return [folderOf(scope)]
  const folder = resourceFolder(scope.slice('resource/'.length))
  const name = folder.slice(folder.lastIndexOf('/') + 1)
  return [folderOf(scope), folder, `${resources}/${name}`, `${sharedResources}/${name}`]
}
