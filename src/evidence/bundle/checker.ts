import { createHash } from 'node:crypto'
import { type Digest, digestOf } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import { lastMoment } from '../../base/time.ts'
import { formatName, formatVersion, isIntact } from '../../session/jsonl/format.ts'
import { checkSignature, type SignatureReport } from '../signature.ts'
import type { ByteLine } from './byte-lines.ts'
import {
  type BundleHead,
  type BundleRecord,
  bundleLine,
  bundleName,
  bundleVersion,
  type CloseRecord,
  type SignatureRecord,
} from './format.ts'
import { JournalChecker } from './journal-checker.ts'
import { SectionChecker } from './section-checker.ts'
import type { BundleProblem, BundleVerification } from './verification.ts'

type Loose = Readonly<Record<string, unknown>>
/** What is wrong with a line: the rest of a sentence that begins with its number. */
type Wrong = Omit<BundleProblem, 'line'>

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Checks a file line by line. Once `problem` is there, the rest of the file is not looked at. */
export class BundleChecker {
  readonly #trusted: readonly Digest[]
  readonly #hash = createHash('sha256')
  readonly #heads: BundleHead[] = []
  readonly #journals = new JournalChecker()
  readonly #signatures: SignatureReport[] = []
  readonly #sections = new SectionChecker()
  /** Of the sessions so far, and of parents that no session so far has. */
  readonly #ids = new Set<unknown>()
  readonly #awaited = new Set<unknown>()
  /** Sessions that tool results and effects name, with the line that first does. */
  readonly #inside = new Map<string, number>()
  #format: string | undefined
  #number = 0
  #close: CloseRecord | undefined
  problem: BundleProblem | undefined

  constructor(trusted: readonly Digest[]) {
    this.#trusted = trusted
  }

  /** The record of a line, when nothing is wrong with it; undefined for an empty line of a session file. */
  line(line: ByteLine): BundleRecord | undefined {
    this.#number++
    try {
      return this.#read(line)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.#found({ reason: 'is nested too deeply to be read' })
      return undefined
    }
  }

  #read(line: ByteLine): BundleRecord | undefined {
    const record = this.#parse(line)
    if (record === undefined) return undefined
    this.#found(this.#check(record))
    if (this.problem) return undefined
    if (!this.#close) this.#hash.update(line.bytes).update('\n')
    const known = asRecord(record)
    if (known.type === 'close') this.#close = known
    return known
  }

  result(): BundleVerification {
    if (!this.problem) this.#found(this.#atEnd())
    const { sessions, chunks } = this.#sections
    return {
      ok: this.problem === undefined,
      format: this.#format ?? bundleName,
      lines: this.#number,
      sessions,
      chunks,
      runs: this.#journals.runs,
      entries: this.#journals.entries,
      heads: this.#heads,
      absent: this.#close?.absent ?? [],
      signatures: this.#signatures,
      ...(this.problem && { problem: this.problem }),
    }
  }

  #found(wrong: Wrong | undefined): void {
    if (!wrong) return
    const line = Math.max(1, this.#number)
    const { session } = this.#sections
    this.problem ??= {
      ...(this.#sections.isOpen && session !== undefined && { session }),
      ...wrong,
      line,
      reason: `Line ${line} ${wrong.reason}.`,
    }
  }

  #parse({ bytes, ended }: ByteLine): Loose | undefined {
    let record: unknown
    let text = ''
    try {
      text = strict.decode(bytes)
      // A session file may have empty lines and a byte order mark; a bundle has neither.
      if (this.#format === formatName && text.trim() === '') return undefined
      record = JSON.parse(this.#number === 1 ? text.replace(/^\uFEFF(?=\{"type":"session")/, '') : text)
    } catch (error) {
      this.#found({ reason: `is not JSON in UTF-8: ${(error as Error).message}` })
      return undefined
    }
    if (!isPlainObject(record)) {
      this.#found({ reason: 'is no record: each line is one JSON object' })
      return undefined
    }
    this.#format ??= record.type === 'session' ? formatName : bundleName
    if (this.#format === bundleName) this.#found(misspelt(record, text, ended))
    return this.problem ? undefined : record
  }

  #check(record: Loose): Wrong | undefined {
    const { type } = record
    const outOfPlace = this.#format === bundleName ? this.#outOfPlace(type) : undefined
    if (outOfPlace) return { reason: `is out of place: ${outOfPlace}` }
    if (type === 'chunk') return this.#sections.add(record) ?? this.#linked(record)
    if (!isIntact(record)) {
      const reason = `was altered: the ${show(type)} record does not match its digest`
      return { reason, ...this.#whose(record) }
    }
    switch (type) {
      case 'bundle':
        return checkVersion(record)
      case 'session':
      case 'end':
        return this.#section(record)
      case 'run':
      case 'entry':
        return this.#journals.add(record)
      case 'close':
        return this.#closing(asRecord(record) as CloseRecord)
      case 'signature':
        return this.#signature(asRecord(record) as SignatureRecord)
      default:
        return { reason: `has the type ${show(type)}, which no record of this format has` }
    }
  }

  #outOfPlace(type: unknown): string | undefined {
    if ((this.#number === 1) !== (type === 'bundle')) return 'a bundle begins with one bundle record'
    if ((this.#close !== undefined) !== (type === 'signature'))
      return 'signatures follow the close record, and nothing else does'
    if (this.#sections.isOpen && type !== 'chunk' && type !== 'end')
      return `the section of session ${this.#sections.session} has not ended`
    return undefined
  }

  #section(record: Loose): Wrong | undefined {
    if (record.type === 'session' && (record.version as number) > formatVersion)
      return { reason: `is in session format ${show(record.version)}; this reads up to ${formatVersion}` }
    const wrong = this.#unordered(record) ?? this.#sections.add(record)
    if (record.type === 'end' && !wrong) this.#heads.push(this.#sections.ended as BundleHead)
    return wrong
  }

  /** In a bundle a session stands once, and behind those that it came from: so no two can be each other's ancestors. */
  #unordered({ type, id, lineage }: Loose): Wrong | undefined {
    if (type !== 'session' || this.#format !== bundleName || typeof id !== 'string') return undefined
    if (this.#ids.has(id)) return { reason: `opens session ${show(id)} a second time`, session: id }
    this.#ids.add(id)
    const { parents } = (lineage ?? {}) as { parents?: unknown }
    for (const parent of Array.isArray(parents) ? parents : [])
      if (parent === id || !this.#ids.has(parent)) this.#awaited.add(parent)
    if (!this.#awaited.has(id)) return undefined
    return { reason: `opens session ${show(id)} too late: it, or one before it, came from it`, session: id }
  }

  /** What was made inside a tool has to be here, too. */
  #linked({ chunk }: Loose): undefined {
    const { sessions } = (chunk ?? {}) as { sessions?: unknown }
    for (const named of Array.isArray(sessions) ? sessions : []) {
      const { session } = (named ?? {}) as { session?: unknown }
      if (typeof session === 'string' && !this.#inside.has(session)) this.#inside.set(session, this.#number)
    }
  }

  #closing({ lines, heads, runs, absent, sha256 }: CloseRecord): Wrong | undefined {
    const before = this.#number - 1
    if (lines !== before) return { reason: `counts ${show(lines)} lines before it, and ${before} are here` }
    if (digestOf(heads ?? null) !== digestOf(this.#heads))
      return { reason: 'names other sessions than are here' }
    if (digestOf(runs ?? null) !== digestOf(this.#journals.described()))
      return { reason: 'names other runs than are here' }
    if (!Array.isArray(absent)) return { reason: `has ${show(absent)} for a list of absent sessions` }
    const lacking = [...this.#inside].find(([id]) => !this.#ids.has(id) && !absent.includes(id))
    if (lacking)
      return {
        reason: `closes a bundle without session ${show(lacking[0])}, which line ${lacking[1]} says was made inside a tool or an effect`,
        session: lacking[0],
      }
    return sha256 === this.#hash.copy().digest('hex')
      ? undefined
      : { reason: 'seals other bytes than are here' }
  }

  #signature(record: SignatureRecord): Wrong | undefined {
    if (!isSignature(record)) return { reason: 'is a signature without a key, a time or a signature' }
    const report = checkSignature(record, this.#close as CloseRecord, this.#trusted)
    this.#signatures.push(report)
    if (report.valid) return undefined
    return {
      reason: `is a signature that key ${report.fingerprint.slice(0, 16)} has not made of this bundle`,
    }
  }

  #atEnd(): Wrong | undefined {
    const { isOpen, session } = this.#sections
    if (this.#format === undefined) return { reason: 'is missing: the file is empty' }
    if (isOpen) return { reason: `is the last one, and the section of session ${session} has not ended` }
    if (this.#format === bundleName && !this.#close)
      return { reason: 'is the last one, and the close record is missing: the file was cut off' }
    if (this.#trusted.length > 0 && !this.#signatures.some(({ trusted }) => trusted))
      return { reason: 'is the last one, and none of the given keys has signed the bundle' }
    return undefined
  }

  #whose(record: Loose): { session?: string; run?: string } {
    if (record.type === 'session' && typeof record.id === 'string') return { session: record.id }
    const run = record.type === 'entry' ? this.#journals.open : (record.run as { id?: unknown } | null)?.id
    return typeof run === 'string' ? { run } : {}
  }
}

/** A line as the record that its type says; what it holds is checked member by member. */
function asRecord(record: Loose): BundleRecord {
  return record as unknown as BundleRecord
}

/** A record has one form: other bytes that mean the same were not written by us. */
function misspelt(record: Loose, text: string, ended: boolean): Wrong | undefined {
  if (!ended) return { reason: 'breaks off: no line feed ends it' }
  if (bundleLine(asRecord(record)) === `${text}\n`) return undefined
  return { reason: 'was altered: it is not written as a bundle writes it' }
}

function checkVersion({ format, version }: Loose): Wrong | undefined {
  if (format !== bundleName) return { reason: `has the format ${show(format)}, not ${bundleName}` }
  if (!Number.isSafeInteger(version) || (version as number) < 1)
    return { reason: `has the version ${show(version)}; a whole number from 1 is needed` }
  if ((version as number) <= bundleVersion) return undefined
  throw new RathError(
    'format-newer',
    `This file is in bundle format ${show(version)}, and this openrath reads up to ${bundleVersion}: update openrath to read it.`,
    { data: { reads: bundleVersion } },
  )
}

function isSignature({ key, at, by, signature }: SignatureRecord): boolean {
  const texts = [key, signature, by ?? '']
  return texts.every(text => typeof text === 'string') && Math.abs(at) <= lastMoment
}
