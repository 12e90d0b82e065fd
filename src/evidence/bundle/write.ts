import { createHash } from 'node:crypto'
import { type Digest, digestOf } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { promptId } from '../../run/prompt.ts'
import { chunkRecord, endRecord, seal, sessionRecord } from '../../session/jsonl/format.ts'
import type { Session } from '../../session/session.ts'
import type { RunRow, Store } from '../../store/spec.ts'
import { type SigningKey, signatureOf } from '../signature.ts'
import { type BundleContent, collectRows, promptsOf } from './collect.ts'
import {
  type BundledJournal,
  type BundledRun,
  type BundleHead,
  type BundleRecord,
  bundleLine,
  bundleName,
  bundleVersion,
} from './format.ts'

export interface BundleOptions extends BundleContent {
  /** Signs it; see `readKeys`. */
  readonly sign?: SigningKey
  /** Milliseconds since the epoch; now by default. */
  readonly at?: number
}

/**
 * The lines of a file that holds sessions with everything they refer to, and runs with their journals; all of a store when none is
 * named. History that sessions share is written once, and payloads that the store keeps apart are written in their places.
 */
export async function* writeBundle(
  store: Store,
  options: BundleOptions = {},
): AsyncGenerator<string, void, undefined> {
  const { at = Date.now(), sign } = options
  const { rows, absent } = await collectRows(store, options)
  const writer = new BundleWriter()
  yield writer.line(seal({ type: 'bundle', format: bundleName, version: bundleVersion, at } as const))
  const missing = new Set(absent)
  for (const { id } of rows) {
    const session = await store.sessions.get(id)
    yield* promptSections(session, store, writer, missing)
    yield* writer.session(session)
  }
  for (const run of await runsOf(store, options)) yield* writer.run(run, await store.runs.journal(run.id))
  const close = seal({
    type: 'close',
    heads: writer.heads,
    runs: writer.runs,
    absent: [...missing],
    lines: writer.lines,
    sha256: writer.sha256(),
  } as const)
  yield bundleLine(close)
  if (sign) yield bundleLine(signatureOf(close, sign, at))
}

async function* promptSections(
  session: Session,
  store: Store,
  writer: BundleWriter,
  missing: Set<string>,
): AsyncGenerator<string> {
  for (const digest of promptsOf(session)) {
    const id = promptId(digest)
    if (writer.has(id) || missing.has(id)) continue
    const prompt = await store.sessions.get(id).catch(error => {
      if (error instanceof RathError && error.code === 'unknown-session') return undefined
      throw error
    })
    if (prompt) yield* writer.session(prompt)
    else missing.add(id)
  }
}

async function runsOf(store: Store, { runs, sessions }: BundleContent): Promise<readonly RunRow[]> {
  if (runs === undefined) return sessions === undefined ? allRuns(store) : []
  return Promise.all([...new Set(runs)].map(id => store.runs.get(id)))
}

const mostRuns = 1000

async function allRuns(store: Store): Promise<readonly RunRow[]> {
  const runs = await store.runs.list({ limit: mostRuns })
  if (runs.length < mostRuns) return runs.toReversed()
  throw new RathError(
    'invalid-argument',
    `This store has ${mostRuns} runs or more, and a bundle of all of them would leave some out. Name the runs or sessions to write.`,
  )
}

class BundleWriter {
  readonly heads: BundleHead[] = []
  readonly runs: BundledJournal[] = []
  readonly #written = new Set<Digest>()
  readonly #sessions = new Set<string>()
  readonly #hash = createHash('sha256')
  lines = 0

  line(record: BundleRecord): string {
    const line = bundleLine(record)
    this.#hash.update(line)
    this.lines++
    return line
  }

  sha256(): Digest {
    return this.#hash.digest('hex')
  }

  has(session: string): boolean {
    return this.#sessions.has(session)
  }

  *session(session: Session): Generator<string> {
    const { id, length } = session
    if (this.#sessions.has(id)) return
    this.#sessions.add(id)
    const chunks = session.chunks.slice()
    const shared = chunks.findLastIndex(chunk => this.#written.has(chunk.id))
    const own = chunks.slice(shared + 1)
    const opening = sessionRecord(session, chunks[shared]?.id, own)
    yield this.line(opening)
    for (const chunk of own) {
      this.#written.add(chunk.id)
      yield this.line(chunkRecord(chunk))
    }
    const head = session.head ?? null
    yield this.line(endRecord(id, head, length))
    this.heads.push({ session: id, head, record: opening.digest })
  }

  *run(row: RunRow, journal: Awaited<ReturnType<Store['runs']['journal']>>): Generator<string> {
    const { id, status, input, output, data, created, updated } = row
    const run: BundledRun = { id, status, input, output, data, created, updated }
    const opening = seal({ type: 'run', run } as const)
    yield this.line(opening)
    const digests = [opening.digest]
    for (const entry of journal) {
      const record = seal({ type: 'entry', entry } as const)
      digests.push(record.digest)
      yield this.line(record)
    }
    this.runs.push({ run: id, entries: journal.length, digest: digestOf(digests) })
  }
}
