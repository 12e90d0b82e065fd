import type { Digest } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { backwards, lengthOf } from '../session/chain.ts'
import type { ChunkBody, ChunkInput } from '../session/chunk.ts'
import type { Lineage } from '../session/lineage.ts'
import { parseChunk } from '../session/parse.ts'
import { type Session, sessionOf, valueFrom } from '../session/session.ts'
import { anchored } from '../session/summary.ts'
import type { SessionValue } from '../session/value.ts'
import { ChainLoader } from './chain-loader.ts'
import { ChainWriter, type EncodedChunk } from './chain-writer.ts'
import type { Committer } from './commit.ts'
import type { Rows, StoreDriver } from './driver.ts'
import { decodeAll } from './encode.ts'
import { Follower } from './follow.ts'
import { checkId, checkTag, resolveName } from './names.ts'
import { listPage } from './page.ts'
import type { Redactor } from './redact.ts'
import { searchChunks } from './search.ts'
import { conflict, extend, keep } from './session-decisions.ts'
import type {
  ChunkRecord,
  PutOptions,
  SearchHit,
  SearchOptions,
  SessionChange,
  SessionFilter,
  SessionPage,
  SessionRow,
  SessionStore,
  SubscribeOptions,
} from './spec.ts'

/** Several collections in a row may each take what a put counted on; a store that has truly lost chunks must not loop. */
const mostAttempts = 5

/** How a session is kept, with what of it the store is believed to have. */
export interface Keeping {
  readonly session: string
  keep(rows: Rows): void
  /** Once that is durable: there may be something left to look at. Does nothing when it was refused. */
  committed(): Promise<void> | undefined
}

/** Sessions in a store: the decisions about them. Rows and locks are the driver's. */
export class Sessions implements SessionStore {
  readonly #driver: StoreDriver
  readonly #committer: Committer
  readonly #redactor: Redactor
  readonly #loader: ChainLoader
  readonly #writer: ChainWriter
  readonly #follower: Follower<SessionRow>
  /** The last one without a secret: a session that grows round by round keeps its own. */
  #cleanLineage: Lineage | undefined

  constructor(driver: StoreDriver, committer: Committer, redactor: Redactor) {
    this.#driver = driver
    this.#committer = committer
    this.#redactor = redactor
    this.#loader = new ChainLoader(driver)
    this.#writer = new ChainWriter(driver, redactor)
    this.#follower = new Follower(wake => driver.watch(wake), driver.sessionChanges)
  }

  /** The session as `put` would keep it. */
  clean(session: Session): Session {
    const given = valueFrom(session)
    const value = this.#redacted(given)
    return value === given ? session : sessionOf(value)
  }

  async put(session: Session, options: PutOptions = {}): Promise<Session> {
    if (options.tag !== undefined) checkTag(options.tag)
    const given = valueFrom(session)
    checkId(given.id)
    const value = this.#redacted(given)
    await this.attempt(async () => {
      const keeping = this.#keeping(value, options)
      // Without a pause where none is needed: what is put before something else is then committed with it.
      const { keep, committed } = keeping instanceof Promise ? await keeping : keeping
      await this.#committer.submit({ sessions: [value.id], decide: keep })
      await committed()
    })
    return value === given ? session : sessionOf(value)
  }

  /** At once, unless the store has to be asked what it has of the session. */
  keeping(session: Session): Keeping | Promise<Keeping> {
    const given = valueFrom(session)
    checkId(given.id)
    return this.#keeping(this.#redacted(given), {})
  }

  /** Runs `work` again when another process has collected chunks that this one remembered as stored: it then writes them. */
  async attempt(work: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        const collected = error instanceof RathError && error.code === 'chunk-missing'
        if (!collected || attempt === mostAttempts) throw error
        this.forget()
      }
    }
  }

  /** Trusts no memory of what is stored. */
  forget(): void {
    this.#writer.forget()
  }

  #keeping(value: SessionValue, options: PutOptions): Keeping | Promise<Keeping> {
    const missing = this.#writer.missing(value.tip, value.id)
    return missing instanceof Promise
      ? missing.then(rows => this.#keepingOf(value, rows, options))
      : this.#keepingOf(value, missing, options)
  }

  #keepingOf(value: SessionValue, rows: readonly EncodedChunk[], options: PutOptions): Keeping {
    const decide = keep(value, rows, options)
    let kept: { readonly longer: SessionRow | undefined } | undefined
    return {
      session: value.id,
      keep: into => {
        kept = undefined
        kept = { longer: decide(into) }
      },
      committed: () => {
        if (kept === undefined) return undefined
        if (kept.longer) return this.#keptBefore(kept.longer, value, options)
        this.#writer.stored(value.tip)
        return undefined
      },
    }
  }

  async #keptBefore(longer: SessionRow, value: SessionValue, { tag, onlyNew }: PutOptions): Promise<void> {
    await this.#checkExtendedFrom(longer, value)
    if (tag !== undefined && !onlyNew) await this.tag(value.id, tag)
    this.#writer.stored(value.tip)
  }

  async append(
    id: string,
    chunks: readonly ChunkInput[],
    { after }: { readonly after?: Digest } = {},
  ): Promise<SessionRow> {
    checkId(id)
    if (!Array.isArray(chunks)) {
      throw new RathError('invalid-argument', `append takes a list of chunks, not ${show(chunks)}.`)
    }
    const at = Date.now()
    const given = chunks.map((chunk, i) =>
      parseChunk(chunk, at, chunks.length === 1 ? 'chunk' : `chunk ${i}`),
    )
    // Without a pause where none is needed: what is asked for together is committed together.
    const bodies = given.some(({ kind }) => kind === 'compress') ? await this.#anchored(id, given) : given
    const clean = this.#redactor.isIdle ? bodies : bodies.map(body => this.#redactor.chunk(body))
    const row = await this.#committer.submit({ sessions: [id], decide: extend(id, clean, after, at) })
    return row ?? unknown(this.#driver, id)
  }

  async get(name: string): Promise<Session> {
    const { id, head, length, branch, lineage } = await resolveName(this.#driver, name)
    const tip = await this.#loader.load(head)
    if (lengthOf(tip) !== length) {
      throw new RathError(
        'store-corrupt',
        `Session ${id} has ${length} chunks, and the store holds ${lengthOf(tip)} of them. Restore the store from a backup.`,
        { data: { session: id } },
      )
    }
    this.#writer.stored(tip)
    return sessionOf({ id, tip, branch, lineage, since: id })
  }

  row(name: string): Promise<SessionRow> {
    return resolveName(this.#driver, name)
  }

  async chunks(name: string, from = 0): Promise<readonly ChunkRecord[]> {
    if (!Number.isSafeInteger(from) || from < 0) {
      throw new RathError('invalid-argument', `chunks: from is a whole number from 0, not ${show(from)}.`)
    }
    const { head, length } = await resolveName(this.#driver, name)
    if (head === null || from >= length) return []
    const rows = (await this.#driver.chunkRows(head, from, length - from)).reverse()
    const bodies = await decodeAll(
      rows.map(row => row.body),
      ids => this.#driver.blobs(ids),
    )
    return rows.map((row, i) => ({
      id: row.id,
      index: row.index,
      chunk: bodies[i] as unknown as ChunkRecord['chunk'],
    }))
  }

  list(filter: SessionFilter = {}): Promise<SessionPage> {
    return listPage(this.#driver, filter)
  }

  search(query: string, options?: SearchOptions): Promise<readonly SearchHit[]> {
    return searchChunks(this.#driver, query, options)
  }

  async tag(name: string, tag: string, { from }: { readonly from?: string } = {}): Promise<void> {
    checkTag(tag)
    const { id } = await resolveName(this.#driver, name)
    const done = await this.#committer.submit({
      sessions: from === undefined ? [id] : [id, from],
      decide: rows => {
        if (!rows.session(id)) return false
        if (from !== undefined && !rows.session(from)?.tags.includes(tag)) throw tagMoved(tag, from)
        rows.setTag(tag, id)
        return true
      },
    })
    if (!done) await unknown(this.#driver, id)
  }

  async untag(tag: string): Promise<void> {
    checkTag(tag)
    if ((await this.#driver.tagged(tag)) === undefined) {
      throw new RathError('unknown-session', `There is no tag ${show(tag)}.`)
    }
    await this.#committer.submit({ decide: rows => void rows.setTag(tag, null) })
  }

  async delete(name: string): Promise<void> {
    const { id } = await resolveName(this.#driver, name)
    await this.#committer.submit({ sessions: [id], deletes: true, decide: rows => rows.deleteSession(id) })
  }

  subscribe(listener: (change: SessionChange) => void, options: SubscribeOptions = {}): Disposable {
    return this.#follower.subscribe(({ row, cursor }) => listener({ session: row, cursor }), {
      id: options.session,
      cursor: options.cursor,
    })
  }

  close(): void {
    this.#follower.close()
  }

  /** Summaries name chunks as the ones of `Session.append` do: by what stays the same about them in a merge. */
  async #anchored(id: string, bodies: readonly ChunkBody[]): Promise<ChunkBody[]> {
    const kept = await this.#driver.sessionRow(id)
    const tip = kept && (await this.#loader.load(kept.head))
    return bodies.map(body => (body.kind === 'compress' ? anchored(body, backwards(tip)) : body))
  }

  /** The value as it may be written; the very same one when it holds no secret. */
  #redacted(value: SessionValue): SessionValue {
    if (this.#redactor.isIdle) return value
    const lineage = this.#redactedLineage(value.lineage)
    const tip = this.#writer.redacted(value.tip)
    const branch = this.#redactor.text(value.branch)
    const same = lineage === value.lineage && tip === value.tip && branch === value.branch
    return same ? value : { ...value, lineage, tip, branch }
  }

  #redactedLineage(given: Lineage): Lineage {
    if (given === this.#cleanLineage) return given
    const { parents: _, operation: __, at: ___, ...words } = given
    const clean = this.#redactor.json(words as JsonObject)
    if (clean !== words) return Object.freeze({ ...given, ...clean })
    this.#cleanLineage = given
    return given
  }

  /** A longer session is kept under this id. Fine if it was extended from this value, a conflict if not. */
  async #checkExtendedFrom(kept: SessionRow, value: SessionValue): Promise<void> {
    const { tip } = value
    if (tip === undefined || kept.head === null) return
    const rows = await this.#driver.chunkRows(kept.head, tip.index, kept.length - tip.index)
    if (rows.at(-1)?.id !== tip.id) throw conflict(kept, value)
  }
}

/** `resolveName` knows how to say that there is no such session. */
async function unknown(driver: StoreDriver, id: string): Promise<never> {
  await resolveName(driver, id)
  throw new RathError(
    'unknown-session',
    `There is no session with the id ${show(id)}; append takes a whole id.`,
  )
}

function tagMoved(tag: string, from: string): RathError {
  return new RathError(
    'session-conflict',
    `The tag ${show(tag)} no longer names session ${from}: somebody else has moved it. Read what it names now, and do your work on that.`,
    { data: { tag, from } },
  )
}
