import { basename, dirname, join, resolve } from 'node:path'
import { cancelledError } from '../../../base/abort.ts'
import { RathError, show } from '../../../base/errors.ts'
import type { JsonObject } from '../../../base/json.ts'
import { allCapabilities } from '../../capabilities.ts'
import { type AiEmbeddingModel, type Embedder, toEmbedder } from '../../embedding.ts'
import type { ResourceLimits } from '../../resource.ts'
import type { MemoryBackend, MemoryStore } from '../../spec.ts'
import { tokenizerVersion } from '../../words.ts'
import { Database, type DatabaseOptions } from './database.ts'
import { labelsOf } from './filter.ts'
import { mergeIfDue } from './merge.ts'
import { parsed } from './rows.ts'
import { LocalStore } from './store.ts'
import { Vectors } from './vectors.ts'
import { numberIn, setNumber, tailWords, WordIndex } from './word-index.ts'

export interface LocalMemoryOptions extends DatabaseOptions {
  /** Where `.openrath` lies or shall lie. The working directory by default. */
  readonly folder?: string
  /** Finds by meaning, too: an AI SDK embedding model, or an embedder of your own. */
  readonly embed?: Embedder | AiEmbeddingModel
  /** Milliseconds since the epoch. The clock of the system by default. */
  readonly now?: () => number
  /** What may be taken in. */
  readonly resources?: ResourceLimits
}

/**
 * Memories in a file, `.openrath/memory/NAME/memory.db`: nothing to install or to start. A spec is `{ name }` (`default` by default), or
 * `{ path }` for a folder of your own.
 */
export function localMemory(options: LocalMemoryOptions = {}): MemoryBackend {
  const embedder = options.embed === undefined ? undefined : toEmbedder(options.embed)
  return {
    name: 'local',
    capabilities: allCapabilities(embedder !== undefined),
    async open(spec: JsonObject = {}, { signal } = {}): Promise<MemoryStore> {
      if (signal?.aborted) throw cancelledError(signal)
      const { name, folder } = placeOf(spec, options.folder ?? '.')
      const db = await Database.open(join(folder, 'memory.db'), options)
      try {
        await prepareIndex(db)
        const vectors = embedder && (await Vectors.open(db, embedder))
        const { now = Date.now, resources = {} } = options
        return new LocalStore({ name, db, now, resources, ...(vectors && { vectors }) })
      } catch (error) {
        db.close()
        throw error
      }
    },
  }
}

function placeOf(spec: JsonObject, home: string): { readonly name: string; readonly folder: string } {
  const { backend, name, path, ...rest } = spec
  const unknown = Object.keys(rest)
  if (unknown.length > 0) {
    throw new RathError(
      'invalid-argument',
      `A local memory has a name or a path, and no ${unknown.join(', ')}.`,
    )
  }
  if (path !== undefined) {
    if (typeof path !== 'string' || path === '' || path.includes('\0'))
      throw new RathError(
        'invalid-argument',
        `The path of a local memory is that of a folder, not ${show(path)}.`,
      )
    const folder = resolve(home, path)
    return { name: `local:${basename(folder) || basename(dirname(folder))}`, folder }
  }
  const chosen = name ?? 'default'
  // It becomes the name of a folder, so it can be nothing that leads elsewhere.
  if (typeof chosen !== 'string' || !/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(chosen)) {
    throw new RathError(
      'invalid-argument',
      `A memory's name is 1 to 64 letters, digits, dots, dashes or underscores, not ${show(chosen)}. For a folder of your own, give path.`,
    )
  }
  return { name: `local:${chosen}`, folder: resolve(home, '.openrath', 'memory', chosen) }
}

/** Rebuilds the index when an older version of the tokenizer made it; all of it or nothing. */
async function prepareIndex(db: Database): Promise<void> {
  const isCurrent = () => numberIn(db, 'tokenizer') === tokenizerVersion
  if (await db.read(isCurrent)) return
  await db.write(() => {
    if (isCurrent()) return
    const last = db.get("SELECT seq FROM sqlite_sequence WHERE name = 'change'")?.seq as number | undefined
    for (const table of ['tail', 'posting', 'segment', 'block', 'change']) db.run(`DELETE FROM ${table}`)
    setNumber(db, 'generation', numberIn(db, 'generation') + 1)
    // As if nothing had ever been merged: everyone who has the store open reloads it.
    setNumber(db, 'merged', last ?? 0)
    const index = new WordIndex()
    for (const { n } of db.all('SELECT n FROM entry ORDER BY n')) {
      const row = db.get('SELECT text, tags, metadata FROM entry WHERE n = ?', n as number)
      if (row === undefined) continue
      const labels = labelsOf(
        parsed(row.tags as string, db.path),
        parsed<JsonObject>(row.metadata as string, db.path),
      )
      const { words, length } = tailWords(row.text as string, labels)
      db.run('UPDATE entry SET length = ? WHERE n = ?', length, n as number)
      if (words !== '') db.run('INSERT INTO tail VALUES (?, ?)', n as number, words)
      db.run('INSERT INTO change (n) VALUES (?)', n as number)
      mergeIfDue(db, index)
    }
    setNumber(db, 'tokenizer', tokenizerVersion)
  })
}
