import { digestOf } from '../../../base/digest.ts'
import { RathError, show } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import type { Session } from '../../../session/session.ts'
import {
  checkChange,
  checkEntries,
  checkFilter,
  checkForget,
  checkListLimit,
  checkQuery,
} from '../../check.ts'
import { planCommit } from '../../commit-plan.ts'
import { changedEntry, fits, newEntry } from '../../entry.ts'
import { checkOpen } from '../../refusal.ts'
import { readResource } from '../../resource.ts'
import type {
  CommitOptions,
  Committed,
  FindOptions,
  Found,
  Memory,
  MemoryCapabilities,
  MemoryChange,
  MemoryFilter,
  MemoryPage,
  MemoryRef,
  MemoryStore,
  MemoryTree,
  NewMemory,
  Resource,
  WriteOptions,
} from '../../spec.ts'
import { sessionScope } from '../../turns.ts'
import { isWithin, parseRef, treeOf } from '../../uri.ts'
import type { VikingClient } from './client.ts'
import { filesNamed, listFiles, readAt, readFiles } from './files.ts'
import { findOn, targetsOf } from './find.ts'
import { fileName, fileOf, folderOf, foreignFile, ours, placeOf, resourceFolder } from './places.ts'
import { extract } from './sessions.ts'
import { batchesOf, createFiles, removeFile, replaceFile } from './write.ts'

export const capabilities: MemoryCapabilities = {
  vectors: true,
  history: false,
  expiry: false,
  lanes: false,
  resources: true,
}

export interface VikingStoreOptions {
  readonly name: string
  readonly client: VikingClient
  readonly now: () => number
  readonly extract: boolean
  readonly retrieval: 'find' | 'search'
  readonly floor: number
}

/** Others may take the keys of a write so often before it counts as busy. */
const mostTries = 8

/** Memories as files on an OpenViking server: each of ours is one, and so is each that the server itself draws from a session. */
export class VikingStore implements MemoryStore {
  readonly name: string
  readonly backend = 'openviking'
  readonly capabilities = capabilities
  readonly #client: VikingClient
  readonly #options: VikingStoreOptions
  #closed = false

  constructor(options: VikingStoreOptions) {
    this.name = options.name
    this.#client = options.client
    this.#options = options
  }

  async write(entries: readonly NewMemory[], { signal }: WriteOptions = {}): Promise<readonly Memory[]> {
    this.#begin(signal)
    return (await this.#write(checkEntries(entries), signal)).all
  }

  async update(ref: MemoryRef, change: MemoryChange, { signal }: WriteOptions = {}): Promise<Memory> {
    this.#begin(signal)
    const checked = checkChange(change)
    refuseUnsupported([checked])
    const before = await this.#held(ref, signal)
    if (before === null) throw missing(ref, this.name)
    if (!placeOf(before.file)?.own) {
      throw unsupported(
        `${show(ref)} was written by the server or is a resource, which OpenViking keeps itself.`,
      )
    }
    const after = changedEntry(before.entry, checked, this.#options.now())
    await replaceFile(this.#client, after, signal)
    const file = fileOf(after.scope, after.category, after.id)
    if (file !== before.file) await removeFile(this.#client, before.file, false, signal)
    return after
  }

  async read(ref: MemoryRef): Promise<Memory | null> {
    this.#begin()
    return (await this.#held(ref))?.entry ?? null
  }

  async list(
    options: MemoryFilter & { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<MemoryPage> {
    this.#begin()
    const { limit = 50, cursor, ...filter } = checkFilter(options, 'list')
    checkListLimit(limit)
    const after = cursor === undefined ? undefined : parseCursor(cursor)
    const entries = (await this.#all(filter)).sort(newestFirst)
    const rest = after ? entries.filter(entry => newestFirst(after, entry) < 0) : entries
    const page = rest.slice(0, limit)
    const last = page.at(-1)
    return rest.length > limit && last
      ? { entries: page, cursor: `${last.at} ${last.id}` }
      : { entries: page }
  }

  async tree(uri?: string, { depth }: { readonly depth?: number } = {}): Promise<MemoryTree> {
    this.#begin()
    const files = await listFiles(this.#client)
    const counts = files.flatMap(file => {
      const place = placeOf(file.uri)
      return place ? [[place.scope, place.category, 1] as const] : []
    })
    return treeOf(counts, uri, depth)
  }

  async find(query: string, options: FindOptions = {}): Promise<Found> {
    this.#begin(options.signal)
    const { query: text, limit } = checkQuery(query, options)
    const { mode, floor = this.#options.floor, ...filter } = checkFilter(options, 'find')
    if (mode === 'words')
      throw unsupported('OpenViking finds by meaning only: leave out mode, or use vectors.')
    if (text.trim() === '') return { hits: [], mode: 'vectors' }
    return findOn(this.#client, text, { ...filter, limit, floor }, this.#options.retrieval)
  }

  async forget(what: MemoryRef | MemoryFilter, { signal }: WriteOptions = {}): Promise<number> {
    this.#begin(signal)
    if (typeof what === 'string') {
      const held = await this.#held(what, signal)
      if (held) await removeFile(this.#client, held.file, false, signal)
      return held ? 1 : 0
    }
    const filter = checkForget(what, this.name)
    // Nothing waits on a lane here, so there is nothing of one to forget.
    const entries = filter.lane === undefined ? await this.#all(filter, signal) : []
    for (const entry of entries) await removeFile(this.#client, fileOfEntry(entry), false, signal)
    return entries.length
  }

  async history(_: MemoryRef): Promise<readonly Memory[]> {
    this.#begin()
    throw unsupported('OpenViking keeps no earlier texts of a memory.')
  }

  async commit(session: Session, options: CommitOptions = {}): Promise<Committed> {
    const { signal } = options
    this.#begin(signal)
    const plan = planCommit(session, options, this.name)
    // What is forgotten leaves no trace on the server; the session's own record says it.
    const entries = plan.entries.filter(entry => !plan.forgotten.includes(idOf(entry)))
    const { fresh } = await sortByKey(this.#client, entries, this.#options.now(), signal)
    if (fresh.length === 0) return { written: [], from: [], settled: 0 }
    const drawn =
      this.#options.extract && options.entries === undefined
        ? await extract(this.#client, sessionScope(session), fresh, signal)
        : []
    const written: Memory[] = []
    for (const batch of batchesOf(entries)) written.push(...(await this.#write(batch, signal)).fresh)
    const extracted = await Promise.all(drawn.map(uri => readAt(this.#client, uri, signal)))
    return {
      written: [...written, ...extracted.filter(entry => entry !== undefined)],
      from: [...new Set(written.flatMap(entry => entry.source.chunks ?? []))],
      settled: 0,
    }
  }

  async ingest(resource: Resource, { signal }: WriteOptions = {}): Promise<readonly Memory[]> {
    this.#begin(signal)
    const { scope } = resource
    if (scope !== undefined && !scope.startsWith('resource')) {
      throw unsupported(`OpenViking keeps resources as such, and not under ${show(scope)}: leave out scope.`)
    }
    return takeIn(this.#client, resource, this.#options.extract, signal)
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #begin(signal?: AbortSignal): void {
    checkOpen(this.name, this.#closed, signal)
  }

  /** Creates what is not there yet. Whoever creates a key at the same time makes the batch fail as a whole, and it is sorted anew. */
  async #write(entries: readonly NewMemory[], signal?: AbortSignal) {
    refuseUnsupported(entries)
    for (let tries = 0; tries < mostTries; tries++) {
      const sorted = await sortByKey(this.#client, entries, this.#options.now(), signal)
      if (sorted.fresh.length === 0 || (await createFiles(this.#client, sorted.fresh, signal))) return sorted
    }
    throw new RathError(
      'store-busy',
      `The memory ${this.name} is busy: others keep writing the same keys. Try again.`,
    )
  }

  async #held(ref: MemoryRef, signal?: AbortSignal): Promise<{ entry: Memory; file: string } | null> {
    const parsed = parseRef(ref)
    if (parsed === undefined) return null
    const foreign = foreignFile(parsed.id)
    const files = foreign ? [foreign] : await filesNamed(this.#client, fileName(parsed.id), ours, signal)
    for (const file of files) {
      const entry = await readAt(this.#client, file, signal)
      if (entry && isWithin(entry.scope, parsed.within)) return { entry, file }
    }
    return null
  }

  async #all(filter: MemoryFilter, signal?: AbortSignal): Promise<Memory[]> {
    const files = await listFiles(this.#client, targetsOf(filter), signal)
    return (await readFiles(this.#client, files, signal)).filter(entry => fits(entry, filter))
  }
}

function fileOfEntry({ scope, category, id }: Memory): string {
  return foreignFile(id) ?? fileOf(scope, category, id)
}

function newestFirst(a: Pick<Memory, 'at' | 'id'>, b: Pick<Memory, 'at' | 'id'>): number {
  return b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}

function parseCursor(cursor: string): Pick<Memory, 'at' | 'id'> {
  const [at = '', id = ''] = cursor.split(' ')
  if (/^-?[\d.e+]+$/.test(at) && id !== '') return { at: Number(at), id }
  throw new RathError(
    'invalid-argument',
    `${show(cursor)} is not a cursor of this memory's list; start without one.`,
  )
}

function refuseUnsupported(entries: readonly (NewMemory | MemoryChange)[]): void {
  for (const { expires, lane } of entries) {
    if (expires !== undefined)
      throw unsupported('OpenViking does not end memories by themselves: leave out expires.')
    if (lane !== undefined && lane !== '') {
      throw unsupported(
        'OpenViking shows a memory to everybody at once: leave out lane, or write it after the commit.',
      )
    }
  }
}

function unsupported(message: string): RathError {
  return new RathError('memory-unsupported', message)
}

function missing(ref: MemoryRef, name: string): RathError {
  return new RathError(
    'memory-missing',
    `There is no entry ${show(ref)} in ${name}: it was forgotten, or never there.`,
  )
}

/** The entry that holds a key already, and the others as they are to be written, each key once. */
interface Sorted {
  /** For each of the given entries, its own. */
  readonly all: readonly Memory[]
  readonly fresh: readonly Memory[]
}

/** The id of an entry with a key is made of its scope and key, so that whoever writes it second finds it there. */
async function sortByKey(
  client: VikingClient,
  given: readonly NewMemory[],
  now: number,
  signal?: AbortSignal,
): Promise<Sorted> {
  const known = new Map<string, Memory>()
  const fresh: Memory[] = []
  const all: Memory[] = []
  for (const entry of given) {
    const id = idOf(entry)
    const held =
      known.get(id) ?? (entry.key === undefined ? undefined : await heldBy(client, entry, id, signal))
    const kept = held ?? newEntry(entry, id, now)
    if (held === undefined) fresh.push(kept)
    known.set(id, kept)
    all.push(kept)
  }
  return { all, fresh }
}

function idOf({ key, scope = 'agent' }: NewMemory): string {
  return key === undefined ? newId() : digestOf([scope, key]).slice(0, 32)
}

/** Its category may have changed, and with it the folder. */
async function heldBy(
  client: VikingClient,
  { scope = 'agent' }: NewMemory,
  id: string,
  signal?: AbortSignal,
): Promise<Memory | undefined> {
  const [uri] = await filesNamed(client, fileName(id), folderOf(scope), signal)
  return uri === undefined ? undefined : readAt(client, uri, signal)
}

/**
 * Hands a text over as a resource of the server, which divides it itself; what was there under the name gives way. Files and addresses are
 * read here, never by the server, so that what may be read is decided in one place.
 */
async function takeIn(
  client: VikingClient,
  resource: Resource,
  summarise: boolean,
  signal?: AbortSignal,
): Promise<readonly Memory[]> {
  const { name, text } = await readResource(resource, {}, signal)
  const form = new FormData()
  form.set(
    'file',
    new Blob([text], { type: 'text/markdown' }),
    /\.\w+$/.test(name) ? 'resource.md' : 'resource.txt',
  )
  const { temp_file_id: upload } = await client.call<{ temp_file_id: string }>(
    'POST',
    '/api/v1/resources/temp_upload',
    {
      form,
      signal,
    },
  )
  const to = resourceFolder(name)
  await client.call('POST', '/api/v1/resources', {
    body: {
      temp_file_id: upload,
      to,
      wait: true,
      processing_mode: summarise ? 'semantic_and_vectors' : 'vectors_only',
    },
    signal,
  })
  return readFiles(client, await listFiles(client, [to], signal), signal)
}
