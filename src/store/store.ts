import { type Digest, sha256 } from '../base/digest.ts'
import { RathError, show } from '../base/errors.ts'
import type { Json } from '../base/json.ts'
import { Session } from '../session/session.ts'
import { Committer } from './commit.ts'
import type { StoreDriver } from './driver.ts'
import { Gate } from './gate.ts'
import { createRedactor, type Redactor } from './redact.ts'
import { Runs } from './runs.ts'
import { Sessions } from './sessions.ts'
import type { BlobStore, GcOptions, GcReport, Store, StoreOptions } from './spec.ts'

const hour = 3_600_000

/** A store over a driver. This is all that a driver of your own needs. */
export function createStore(
  driver: StoreDriver,
  { secrets = {}, redact, readOnly = false }: Pick<StoreOptions, 'secrets' | 'redact' | 'readOnly'> = {},
): Store {
  const redactor = createRedactor(secrets, redact)
  const gate = new Gate(redactor)
  const allowed = readOnly ? readOnlyDriver(driver) : driver
  const committer = new Committer(allowed)
  const sessions = new Sessions(allowed, committer, redactor)
  const runs = new Runs(allowed, committer, redactor, sessions, gate)
  let closing: Promise<void> | undefined

  const close = () => {
    closing ??= (async () => {
      await gate.close()
      sessions.close()
      runs.close()
      await committer.close()
      await driver.close()
    })()
    return closing
  }

  return {
    url: driver.url,
    ...(driver.neverWaits && { isTemporary: true }),
    sessions: gate.around(sessions),
    blobs: gate.around(blobStore(allowed, committer, redactor)),
    runs: gate.around(runs),
    clean: <T extends Session | Json | Error>(value: T): T => {
      if (value instanceof Session) return sessions.clean(value) as T
      return value instanceof Error ? redactor.error(value) : (redactor.json(value as Json) as T)
    },
    unfinished: text => redactor.unfinished(text),
    gc: options => gate.pass(() => collect(allowed, options)),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A driver that refuses to write. The word index stays as the last writer left it. */
function readOnlyDriver(driver: StoreDriver): StoreDriver {
  const refuse = async () => {
    throw new RathError(
      'store-read-only',
      `The store ${driver.url} was opened to read only; open it without readOnly to write.`,
    )
  }
  const instead: Partial<StoreDriver> = {
    neverWaits: false,
    commit: refuse,
    sweep: refuse,
    takeRun: refuse,
    keepBlobs: refuse,
    unindexed: async () => [],
  }
  return new Proxy(driver, {
    get(target, name) {
      const member = instead[name as keyof StoreDriver] ?? target[name as keyof StoreDriver]
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

function blobStore(driver: StoreDriver, committer: Committer, redactor: Redactor): BlobStore {
  return {
    async put(given) {
      if (typeof given !== 'string' && !(given instanceof Uint8Array)) {
        throw new RathError('invalid-argument', `A blob is a string or a Uint8Array, not ${show(given)}.`)
      }
      // A copy, because the caller may go on using its own while this one waits to be written.
      const bytes = redactor.bytes(
        typeof given === 'string' ? new TextEncoder().encode(given) : given.slice(),
      )
      const id = sha256(bytes)
      await committer.submit({ decide: rows => void rows.addBlob({ id, bytes }) })
      return id
    },
    async get(id: Digest) {
      checkDigest(id)
      const bytes = (await driver.blobs([id])).get(id)
      if (bytes === undefined)
        throw new RathError('unknown-blob', `There is no blob ${show(id)} in this store.`)
      if (sha256(bytes) === id) return bytes
      throw new RathError(
        'store-corrupt',
        `Blob ${id} does not match its digest; restore the store from a backup.`,
      )
    },
    async has(id: Digest) {
      checkDigest(id)
      return (await driver.blobs([id])).has(id)
    },
    async keep(ids: readonly Digest[]) {
      for (const id of ids) checkDigest(id)
      return driver.keepBlobs?.(ids) ?? (await driver.blobs(ids)).size
    },
  }
}

function checkDigest(id: unknown): void {
  if (typeof id === 'string' && /^[0-9a-f]{64}$/.test(id)) return
  throw new RathError(
    'invalid-argument',
    `A blob is named by its sha256, 64 lower-case hex digits, not ${show(id)}.`,
  )
}

async function collect(
  driver: StoreDriver,
  { olderThan = hour, dryRun = false }: GcOptions = {},
): Promise<GcReport> {
  if (typeof olderThan !== 'number' || !(olderThan >= 0)) {
    throw new RathError(
      'invalid-argument',
      `gc: olderThan is milliseconds, at least 0, not ${show(olderThan)}.`,
    )
  }
  return { dryRun, ...(await driver.sweep(Date.now() - olderThan + 1, dryRun)) }
}
