import { createHash } from 'node:crypto'
import { digestOf } from '../../src/base/digest.ts'
import { type BundleRecord, bundleLine } from '../../src/evidence/bundle/format.ts'
import { seal } from '../../src/session/jsonl/format.ts'

export interface Forged {
  readonly version?: unknown
  readonly sessions?: readonly { readonly id: string; readonly parents?: readonly string[] }[]
  readonly runs?: readonly { readonly run: unknown; readonly entries?: readonly object[] }[]
  readonly absent?: unknown
  readonly signature?: object
}

/** A bundle whose digests are all right, as somebody writes it who means harm. */
export function forge({ version = 1, sessions = [], runs = [], absent = [], signature }: Forged): string {
  const lines: string[] = []
  const add = (record: object) => {
    const sealed = seal(record as { type: string })
    lines.push(bundleLine(sealed as unknown as BundleRecord))
    return sealed.digest
  }
  add({ type: 'bundle', format: 'openrath/bundle', version, at: 1 })
  const heads = sessions.map(({ id, parents = [] }) => {
    const lineage = { parents, operation: 'fork', at: 1, extras: {} }
    const record = add({ type: 'session', format: 'openrath/session', version: 1, id, branch: '', lineage })
    add({ type: 'end', session: id, head: null, length: 0 })
    return { session: id, head: null, record }
  })
  const journals = runs.map(({ run, entries = [] }) => {
    const digests = [add({ type: 'run', run }), ...entries.map(entry => add({ type: 'entry', entry }))]
    const id = (run as { id?: string } | null)?.id
    return { run: id, entries: entries.length, digest: digestOf(digests) }
  })
  const sha256 = createHash('sha256').update(lines.join('')).digest('hex')
  add({ type: 'close', heads, runs: journals, absent, lines: lines.length, sha256 })
  if (signature) add({ type: 'signature', algorithm: 'ed25519', ...signature })
  return lines.join('')
}

export const aRun = {
  id: 'run-9',
  status: 'done',
  input: null,
  output: null,
  data: {},
  created: 1,
  updated: 1,
}

export const anEntry = {
  run: 'run-9',
  key: 'k',
  occurrence: 0,
  kind: 'tool',
  request: null,
  intendedAt: 1,
  outcome: 1,
}
