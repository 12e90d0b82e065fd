import { isPlainObject, type JsonObject } from '../../../base/json.ts'
import type { Memory } from '../../spec.ts'
import { uriOf } from '../../uri.ts'
import type { VikingClient } from './client.ts'
import { isRefusal } from './errors.ts'
import { type EntryAddress, homeward, memories, placeOf, resources, sharedResources } from './places.ts'

export interface VikingFile {
  readonly uri: string
  readonly modified: number
}

interface Stat {
  readonly uri: string
  readonly isDir: boolean
  readonly modTime?: string
}

/** More than the server lists by itself. */
const mostNodes = 100_000
const deepest = 32
/** Files read at a time. */
const together = 8

/** All files that are memories, below a folder or everywhere. A folder that is not there has none. */
export async function listFiles(
  client: VikingClient,
  below: readonly string[] = [memories, resources, sharedResources],
  signal?: AbortSignal,
): Promise<VikingFile[]> {
  const files = await Promise.all(
    below.map(uri =>
      client
        .call<Stat[]>('GET', '/api/v1/fs/tree', {
          query: { uri, output: 'original', node_limit: mostNodes, level_limit: deepest },
          signal,
          shape: Array.isArray,
        })
        .catch(nothing<Stat[]>([])),
    ),
  )
  return files
    .flat()
    .filter(({ isDir, uri }) => !isDir && placeOf(uri) !== undefined)
    .map(({ uri, modTime }) => ({ uri: homeward(uri), modified: timeOf(modTime) }))
}

/** The entries of files, in their order, without those that are gone meanwhile. */
export async function readFiles(
  client: VikingClient,
  files: readonly VikingFile[],
  signal?: AbortSignal,
): Promise<Memory[]> {
  const entries: (Memory | undefined)[] = []
  for (let from = 0; from < files.length; from += together) {
    const some = files.slice(from, from + together)
    entries.push(...(await Promise.all(some.map(file => readEntry(client, file, signal)))))
  }
  return entries.filter(entry => entry !== undefined)
}

/** The entry of a file by its address; undefined when there is none. */
export async function readAt(
  client: VikingClient,
  uri: string,
  signal?: AbortSignal,
): Promise<Memory | undefined> {
  if (placeOf(uri) === undefined) return undefined
  const stat = await client
    .call<Stat>('GET', '/api/v1/fs/stat', { query: { uri }, signal, shape: isPlainObject })
    .catch(nothing(undefined))
  if (stat === undefined || stat.isDir) return undefined
  return readEntry(client, { uri: homeward(uri), modified: timeOf(stat.modTime) }, signal)
}

/** Files with this name anywhere below a folder. */
export async function filesNamed(
  client: VikingClient,
  name: string,
  below: string,
  signal?: AbortSignal,
): Promise<string[]> {
  const body: JsonObject = { pattern: `**/${name}`, uri: below }
  const { matches } = await client
    .call<{ matches: string[] }>('POST', '/api/v1/search/glob', {
      body,
      signal,
      idempotent: true,
      shape: result => isPlainObject(result) && Array.isArray(result.matches),
    })
    .catch(nothing({ matches: [] as string[] }))
  return matches.map(homeward)
}

/** Makes a missing file or folder an answer. */
export function nothing<T>(answer: T): (error: unknown) => T {
  return error => {
    if (isRefusal(error, 'NOT_FOUND')) return answer
    throw error
  }
}

async function readEntry(
  client: VikingClient,
  { uri, modified }: VikingFile,
  signal?: AbortSignal,
): Promise<Memory | undefined> {
  const place = placeOf(uri)
  if (place === undefined) return undefined
  const content = await client
    .call<string>('GET', '/api/v1/content/read', {
      query: { uri },
      signal,
      shape: result => typeof result === 'string',
    })
    .catch(nothing(undefined))
  return content === undefined ? undefined : fromFile(content, place, modified)
}

function timeOf(text: string | undefined): number {
  const time = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? 0 : time
}

const start = '\n<!-- openrath '
const end = ' -->\n'

/** A file: the text, for the server to read and embed, and behind it what else is known, as a comment of Markdown. */
export function toFile(entry: Memory): string {
  const { id: _, uri: _uri, scope: _scope, category: _category, text, ...rest } = entry
  // The comment ends at the first `-->`, which must not be one of ours.
  const known = JSON.stringify(rest).replaceAll('>', '\\u003e')
  return `${text}${start}${known}${end}`
}

/** An entry of its file; of one that others wrote, what there is. */
function fromFile(content: string, place: EntryAddress, modified: number): Memory {
  const { scope, category, id, own } = place
  const fixed = { id, uri: uriOf(scope, category, id), scope, category }
  const at = own ? content.lastIndexOf(start) : -1
  const known = at < 0 ? undefined : comment(content.slice(at + start.length))
  if (known) return { ...fixed, text: content.slice(0, at), ...known }
  const resource = scope.startsWith('resource/') ? scope.slice('resource/'.length) : undefined
  return {
    ...fixed,
    text: content,
    tags: [],
    metadata: {},
    at: modified,
    written: modified,
    source: resource === undefined ? {} : { resource },
    standing: 'adopted',
    version: 1,
  }
}

type Rest = Omit<Memory, 'id' | 'uri' | 'scope' | 'category' | 'text'>

function comment(text: string): Rest | undefined {
  try {
    const value: unknown = JSON.parse(text.slice(0, text.indexOf('-->')))
    return isPlainObject(value) ? (value as unknown as Rest) : undefined
  } catch {
    return undefined
  }
}
