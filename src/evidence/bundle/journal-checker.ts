import { type Digest, digestOf } from '../../base/digest.ts'
import { show } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import type { BundledJournal } from './format.ts'

export interface JournalProblem {
  readonly reason: string
  readonly run?: string
}

type Loose = Readonly<Record<string, unknown>>

/** Looks at the runs of a file and their entries: each has what a store needs of it, and stands once. */
export class JournalChecker {
  readonly #journals: { readonly run: string; readonly digests: Digest[] }[] = []
  readonly #runs = new Set<string>()
  /** Of the run at hand. */
  #keys = new Set<string>()

  get runs(): number {
    return this.#journals.length
  }

  get entries(): number {
    return this.#journals.reduce((sum, { digests }) => sum + digests.length - 1, 0)
  }

  /** The run whose entries may follow. */
  get open(): string | undefined {
    return this.#journals.at(-1)?.run
  }

  described(): BundledJournal[] {
    return this.#journals.map(({ run, digests }) => ({
      run,
      entries: digests.length - 1,
      digest: digestOf(digests),
    }))
  }

  add(record: Loose): JournalProblem | undefined {
    return record.type === 'run' ? this.#run(record) : this.#entry(record)
  }

  #run({ run, digest }: Loose): JournalProblem | undefined {
    const wrong = firstWrong(run, runFields)
    if (wrong) return { reason: `is a run record ${wrong}` }
    const { id } = run as { id: string }
    if (this.#runs.has(id)) return { reason: `is run ${show(id)} a second time`, run: id }
    this.#runs.add(id)
    this.#keys = new Set()
    this.#journals.push({ run: id, digests: [digest as Digest] })
    return undefined
  }

  #entry({ entry, digest }: Loose): JournalProblem | undefined {
    const journal = this.#journals.at(-1)
    const wrong = firstWrong(entry, entryFields)
    if (wrong) return { reason: `is an entry record ${wrong}` }
    const { run, key, occurrence } = entry as { run: string; key: string; occurrence: number }
    if (journal === undefined || journal.run !== run)
      return { reason: `is an entry of run ${show(run)}, and does not stand behind it` }
    const name = `${occurrence} ${key}`
    if (this.#keys.has(name))
      return { reason: `has the effect ${show(key)}, occurrence ${occurrence}, a second time`, run }
    this.#keys.add(name)
    journal.digests.push(digest as Digest)
    return undefined
  }
}

type Fields = Readonly<Record<string, (value: unknown) => boolean>>

const isText = (value: unknown) => typeof value === 'string' && value !== ''
const isTextOrNull = (value: unknown) => value === null || isText(value)
const isNumber = (value: unknown) => typeof value === 'number'
const statuses: readonly unknown[] = ['running', 'waiting', 'needs-review', 'done', 'failed', 'cancelled']

const runFields: Fields = {
  id: isText,
  status: value => statuses.includes(value),
  input: isTextOrNull,
  output: isTextOrNull,
  data: isPlainObject,
  created: isNumber,
  updated: isNumber,
}
const entryFields: Fields = {
  run: isText,
  key: isText,
  occurrence: value => Number.isSafeInteger(value) && (value as number) >= 0,
  kind: isText,
  request: value => value !== undefined,
  intendedAt: isNumber,
}

function firstWrong(value: unknown, fields: Fields): string | undefined {
  if (!isPlainObject(value)) return `that holds ${show(value)}`
  const wrong = Object.keys(fields).find(name => !fields[name]?.(value[name]))
  return wrong === undefined ? undefined : `whose ${wrong} is ${show(value[wrong])}`
}
