import { RathError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import type { SessionValue } from '../value.ts'
import type { VerificationProblem } from '../verify.ts'
import { PythonSection } from './python.ts'
import { type Section, SessionSection, type SharedChunks } from './section.ts'

export interface ReadOptions {
  /** Told when the record is readable but not whole; `session.verify()` says the same later. */
  readonly onDamage?: (problem: VerificationProblem) => void
}

export interface ReadResult {
  readonly value: SessionValue
  readonly damage: VerificationProblem | undefined
}

/** The one session of a text. */
export function readSession(text: string, options: ReadOptions = {}): ReadResult {
  if (typeof text !== 'string') {
    throw new RathError('format-malformed', `A session file is text, not ${typeof text}.`)
  }
  let damage: VerificationProblem | undefined
  const reader = new Reader({
    onDamage(problem) {
      damage ??= problem
      options.onDamage?.(problem)
    },
  })
  const results: ReadResult[] = []
  const lines = text.split('\n')
  const torn = lines.pop() as string
  for (const line of lines) results.push(...reader.line(line))
  results.push(...reader.end(torn))
  const [first, second] = results
  if (first === undefined)
    throw new RathError('format-malformed', 'The session file is empty; there is nothing to read.')
  if (second) {
    throw new RathError(
      'format-malformed',
      `The file holds ${results.length} sessions and fromJSONL reads one; use readSessions for all of them.`,
    )
  }
  return { value: first.value, damage }
}

/** The sessions of a stream, each as soon as its section ends. */
export async function* readLines(
  source: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  options: ReadOptions = {},
): AsyncGenerator<ReadResult, void, undefined> {
  const reader = new Reader(options)
  const decoder = new TextDecoder()
  // What came of a line so far is not looked through again: a line may be as long as a file, and come in a thousand pieces.
  let begun: string[] = []
  for await (const piece of source) {
    const text = typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true })
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      begun.push(text.slice(start, end))
      yield* reader.line(begun.join(''))
      begun = []
      start = end + 1
    }
    if (start < text.length) begun.push(text.slice(start))
  }
  yield* reader.end(begun.join('') + decoder.decode())
}

class Reader {
  readonly #options: ReadOptions
  readonly #shared: SharedChunks = new Map()
  #section: Section | undefined
  #opened = false
  #number = 0

  constructor(options: ReadOptions) {
    this.#options = options
  }

  *line(line: string): Generator<ReadResult> {
    this.#number++
    const text = this.#number === 1 ? line.replace(/^\uFEFF/, '') : line
    if (text.trim() !== '') yield* this.#record(parseLine(text, this.#number))
  }

  /** The input is over; `rest` is what followed the last line break. */
  *end(rest: string): Generator<ReadResult> {
    let torn: VerificationProblem | undefined
    if (rest.trim() !== '') {
      try {
        yield* this.line(rest)
      } catch (error) {
        if (!this.#opened || !(error instanceof SyntaxProblem)) throw error
        torn = { reason: `the file breaks off in line ${this.#number}; everything before it was read` }
      }
    }
    if (this.#section) yield this.#finish(this.#section, torn)
    else if (torn) this.#options.onDamage?.(torn)
  }

  *#record(record: Record<string, unknown>): Generator<ReadResult> {
    const opens = record.type === 'session' || record.record_type === 'header'
    if (opens) {
      if (this.#section) yield this.#finish(this.#section)
      this.#opened = true
      this.#section =
        record.type === 'session'
          ? new SessionSection(record, this.#number, this.#shared)
          : new PythonSection(record, this.#number)
      return
    }
    if (this.#section === undefined) {
      throw new RathError(
        'format-malformed',
        `Line ${this.#number} comes before any session record; a session file starts with one (docs/format/session.md).`,
      )
    }
    if (this.#section.add(record, this.#number)) {
      yield this.#finish(this.#section)
      this.#section = undefined
    }
  }

  #finish(section: Section, torn?: VerificationProblem): ReadResult {
    const { value, damage } = section.result()
    const problem = torn ?? damage
    if (problem) this.#options.onDamage?.(problem)
    return { value, damage: problem }
  }
}

/** A line that is not JSON: fatal in the middle of a file, a torn write at its end. */
class SyntaxProblem extends RathError {}

function parseLine(line: string, number: number): Record<string, unknown> {
  let record: unknown
  try {
    record = JSON.parse(line)
  } catch (cause) {
    throw new SyntaxProblem('format-malformed', `Line ${number} is not JSON: ${(cause as Error).message}`, {
      cause,
    })
  }
  if (isPlainObject(record)) return record
  throw new RathError('format-malformed', `Line ${number} must be a JSON object, one record a line.`)
}
