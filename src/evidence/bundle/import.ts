import { RathError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Store } from '../../store/spec.ts'
import type { Bundle, BundleRun } from './read.ts'

export interface ImportReport {
  /** Ids of the sessions that the store has now; those it had before are among them. */
  readonly sessions: readonly string[]
  readonly runs: readonly string[]
  /** Runs that were there already and were left as they are. */
  readonly skipped: readonly string[]
}

/**
 * Puts the content of a bundle into a store. Ids and digests stay; the times at which a store wrote a row or a journal entry are new. Done
 * twice it changes nothing.
 */
export async function importBundle(bundle: Bundle, store: Store): Promise<ImportReport> {
  const sessions: string[] = []
  for (const session of bundle.sessions) {
    await store.sessions.put(session)
    sessions.push(session.id)
  }
  const runs: string[] = []
  const skipped: string[] = []
  for (const run of bundle.runs) {
    const isNew = await importRun(run, store)
    ;(isNew ? runs : skipped).push(run.run.id)
  }
  return { sessions, runs, skipped }
}

const lease = 60_000

async function importRun({ run, journal }: BundleRun, store: Store): Promise<boolean> {
  const { id, status, input, output, data } = run
  const named = { ...(input !== null && { input }), ...(output !== null && { output }) }
  try {
    await store.runs.create({ id, data, ...named })
  } catch (error) {
    if (error instanceof RathError && error.code === 'run-exists') return false
    throw error
  }
  const { fence } = await store.runs.claim(id, `import-${newId()}`, lease)
  for (const { key, occurrence, kind, request, outcome } of journal) {
    await store.runs.intend(id, fence, { key, occurrence, kind, request })
    if (outcome !== undefined) await store.runs.conclude(id, fence, key, occurrence, outcome)
  }
  await store.runs.update(id, fence, { status, release: true })
  return true
}
