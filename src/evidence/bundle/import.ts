import type { Digest } from '../../base/digest.ts'
import { RathError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import { markImported } from '../../run/place/home.ts'
import { Workspaces } from '../../run/place/workspaces.ts'
import { backwards } from '../../session/chain.ts'
import { type GraphNode, sessionGraph } from '../../session/graph.ts'
import { type Session, valueFrom } from '../../session/session.ts'
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
 * twice it changes nothing. Where the code of a run was, and where its sessions were placed, stays on record and decides nothing here.
 */
export async function importBundle(bundle: Bundle, store: Store): Promise<ImportReport> {
  await refuseCycles(bundle.sessions, store)
  const sessions: string[] = []
  markImported(foreignPlacements(bundle.sessions))
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
    await store.runs.create({ id, data: withoutCode(data), ...named })
  } catch (error) {
    if (!(error instanceof RathError) || error.code !== 'run-exists') throw error
    if (!(await store.runs.get(id)).owner?.startsWith(importer)) return false
    // An import was cut off in it: half of a journal would have the rest done again.
  }
  const log = await store.runs.claim(id, `${importer}${newId()}`, lease)
  for (const { key, occurrence, kind, request, outcome } of journal) {
    const known = (await store.runs.entry(id, key, occurrence))?.outcome
    await log.append([
      { kind: 'intend', entry: { key, occurrence, kind, request } },
      ...(outcome !== undefined && known === undefined
        ? [{ kind: 'conclude', key, occurrence, outcome } as const]
        : []),
    ])
  }
  await log.append([{ kind: 'update', change: { status, release: true } }])
  return true
}

const importer = 'import-'

/** Those that nothing was done under on this machine: what comes back to where it began is one's own. */
function foreignPlacements(sessions: readonly Session[]): Set<Digest> {
  const own = new Workspaces()
  const seen = new Set<Digest>()
  const foreign = new Set<Digest>()
  for (const session of sessions) {
    for (const chunk of backwards(valueFrom(session).tip)) {
      // Sessions share their history.
      if (seen.has(chunk.id)) break
      seen.add(chunk.id)
      if (chunk.kind === 'placement' && !own.isPlaced(chunk.id)) foreign.add(chunk.id)
    }
  }
  return foreign
}

/** Somebody else's record does not say which file is run here: whoever goes on with it names the code. Where it was stays to be read. */
function withoutCode({ module, ...data }: JsonObject): JsonObject {
  return module === undefined ? data : { ...data, imported: { module } }
}

/** Sessions that are each other's ancestors would be in the way of every graph of the store from then on. */
async function refuseCycles(sessions: readonly Session[], store: Store): Promise<void> {
  const nodes = new Map<string, GraphNode>(sessions.map(session => [session.id, session]))
  for (const { lineage } of nodes.values()) {
    for (const parent of lineage.parents) {
      const kept = nodes.has(parent) ? undefined : await store.sessions.row(parent).catch(() => undefined)
      if (kept?.id === parent) nodes.set(parent, kept)
    }
  }
  const known = (parent: string) => nodes.has(parent)
  sessionGraph(
    [...nodes.values()].map(({ id, lineage }) => ({
      id,
      lineage: { ...lineage, parents: lineage.parents.filter(known) },
    })),
  )
}
