import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Digest } from '../../base/digest.ts'
import { RathError, show } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { ownFolder } from '../../model/project-config.ts'
import { processSurroundings } from '../../model/surroundings.ts'
import { emptyTree } from '../../sandbox/workspace/object.ts'
import { refuseAltered } from '../../session/altered.ts'
import type { Session } from '../../session/session.ts'
import type { JournalEntry, RunRow, Store } from '../../store/spec.ts'
import type { ToolRecord } from '../../tool/tool-record.ts'
import { needsReview, Reviews, unfinishedIn } from '../approve/review.ts'
import type { BudgetLimits } from '../budget.ts'
import { isGone, Journal, processOf } from '../journal.ts'
import type { Places } from '../place/places.ts'
import { type RunSetup, runSetup } from '../run.ts'
import { loadRecord } from './record.ts'

/** What can be run: a workflow, as the runtime sees it. */
export type Runnable = (session: Session, options: never) => Promise<Session>

export interface ResumePlace {
  readonly store: Store
  readonly lease: number
  readonly places: Pick<Places, 'check' | 'endLeftBy' | 'move'>
  /** Of the call. */
  readonly options: Limits & ResumeOptions & { readonly altered?: 'refuse' | 'accept' }
}

/** How a run goes on, besides the options of a call. */
export interface ResumeOptions {
  /**
   * Where the project of the run lies now, when you have moved or copied it. Without it a run goes on only in the folder that it began in. The
   * folder has to hold the files as the run left them, or none.
   */
  readonly movedTo?: string
}

/** Goes on with a run. What it did before is on record and not done again; what was cut off follows its effect. */
export async function resumeRun(
  id: string,
  workflow: Runnable | undefined,
  { store, lease, places, options: { movedTo, ...options } }: ResumePlace,
): Promise<Session> {
  const row = await store.runs.get(id)
  const finished = row.status === 'done' && row.output !== null && (await kept(row.output, store))
  if (finished) return finished
  const given = withLimits(row, options)
  const work = workflow ?? (await workflowOf(row))
  const input = await store.sessions.get(row.input as string)
  // Before it is claimed: what waits for a person goes on waiting.
  if (options.altered !== 'accept') refuseAltered(input)
  const journal = await Journal.claim(id, store, lease)
  try {
    // Its commands may still run, and change files.
    if (row.owner !== null && isGone(row.owner)) await places.endLeftBy(processOf(row.owner))
    if (movedTo !== undefined) await places.move(input, id, movedTo, treesIn(await store.runs.journal(id)))
    places.check({ session: input, run: id })
    const setup = await goOn(movedTo === undefined ? row : movedRow(row, movedTo), journal)
    const out = await work(input, { ...given, [runSetup]: setup } as never)
    if (!journal.isDriven) throw notTaken(id)
    return out
  } catch (error) {
    if (!journal.isDriven) {
      // Nothing was done in it, so it is as it was, unless somebody has to look at it now.
      const { status, data } = row
      if (!isReview(error)) journal.update({ status, data })
      await journal.release().catch(() => {})
    }
    throw error
  }
}

/** What a claimed run goes on with. Rejects when a person has to look at something first. */
async function goOn({ id, status, data: row }: RunRow, journal: Journal): Promise<RunSetup> {
  const { store } = journal
  const record = await loadRecord(id, store)
  // What was in doubt is found again if it still is: the code may have changed, or somebody has answered.
  const { again, failed, asks: _asks, doubts: _doubts, ...data } = row
  const hasFailed = status === 'failed' || failed === true
  const unfinished = unfinishedIn(record, Array.isArray(again) ? again : [])
  if (unfinished.length > 0) {
    journal.update({ status: 'needs-review', data: { ...row, failed: hasFailed } })
    const reviews = new Reviews(record)
    throw needsReview(
      id,
      unfinished.map(entry => reviews.cutOff(entry)),
    )
  }
  // What was found not to have happened is tried once more, not for ever.
  journal.update({ status: 'running', data })
  await journal.settled()
  const { reuse, allowed } = data
  return {
    id,
    data,
    journal,
    record,
    ...(Array.isArray(allowed) && { allowed: new Set(allowed as string[]) }),
    // A run that was ended by a failure gets past it only by trying again; one that was cut off had dealt with its failures.
    retries: hasFailed,
    ...(typeof reuse === 'string' && { lender: () => loadRecord(reuse, store) }),
  }
}

/** That it was moved stays with the run. */
function movedRow(row: RunRow, movedTo: string): RunRow {
  const before = Array.isArray(row.data.movedTo) ? row.data.movedTo : []
  return { ...row, data: { ...row.data, movedTo: [...before, resolve(movedTo)] } }
}

/** The files that calls of a run found and left. */
function treesIn(journal: readonly JournalEntry[]): Set<Digest> {
  const trees = new Set<Digest>()
  for (const { outcome } of journal) {
    const { evidence } = ((outcome ?? {}) as { readonly value?: Partial<ToolRecord> | null }).value ?? {}
    if (evidence?.before !== undefined) trees.add(evidence.before)
    if (evidence?.tree !== undefined) trees.add(evidence.tree)
  }
  return trees
}

function isReview(error: unknown): boolean {
  return error instanceof RathError && error.code === 'needs-review'
}

function notTaken(run: string): RathError {
  return new RathError(
    'invalid-argument',
    `What was given to resume did not go on with run ${run}: a function has to hand its options on, as in (session, options) => agent(session, options).`,
  )
}

/** The files that the first call of a run found, which a replay of its tools begins with. */
export async function filesBefore(
  id: string,
  store: Store,
): Promise<{ readonly tree: Digest; readonly packs?: readonly Digest[] }> {
  for (const { outcome } of (await loadRecord(id, store)).effects()) {
    const { value } = (outcome ?? {}) as { readonly value?: ToolRecord }
    const { before, packs } = value?.evidence ?? {}
    if (before !== undefined) return { tree: before, ...(packs && { packs }) }
  }
  return { tree: emptyTree }
}

async function kept(id: string, store: Store): Promise<Session | undefined> {
  return store.sessions.get(id).catch(error => {
    if (error instanceof RathError && error.code === 'unknown-session') return undefined
    throw error
  })
}

/** The workflow that a run's row names: an instance, or a class that needs no arguments. */
async function workflowOf({ id, data }: RunRow): Promise<Runnable> {
  const { file, export: name = 'default' } = (data.module ?? {}) as Partial<RunModule>
  if (file === undefined) {
    throw new RathError(
      'invalid-argument',
      `Run ${id} does not say where its code is; give the workflow: runtime.resume(${show(id)}, workflow).`,
    )
  }
  if (!isSealed(data.module)) {
    throw new RathError(
      'invalid-argument',
      `Run ${id} names the code ${show(file)}, but no run of this user wrote that: the store came from elsewhere, or was written by somebody else. Look at the file, then give the workflow: runtime.resume(${show(id)}, workflow).`,
      { data: { run: id, file } },
    )
  }
  const found = (await load(file, id))[name]
  if (isClass(found)) return new found()
  if (typeof found === 'function') return found as Runnable
  throw new RathError('invalid-argument', `${file} exports no workflow as ${show(name)}, but ${show(found)}.`)
}

async function load(file: string, run: string): Promise<Record<string, unknown>> {
  const path = resolve(file)
  try {
    return await import(pathToFileURL(path).href)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RathError(
      'invalid-argument',
      `The code of run ${run} cannot be loaded from ${path}: ${why}\nMend it, or give the workflow: runtime.resume(${show(run)}, workflow).`,
      { cause },
    )
  }
}

/** An instance can be called too, and is made of a class that cannot. */
function isClass(found: unknown): found is new () => Runnable {
  return (
    typeof found === 'function' &&
    typeof (found as { prototype?: { forward?: unknown } }).prototype?.forward === 'function'
  )
}

/** Where the code of a run is found again. */
export interface RunModule {
  /** A path, from the current folder if it is not absolute. */
  readonly file: string
  /** The name under which it exports the workflow; `default` by default. */
  readonly export?: string
  /** What `rath run --model` named: a model, or a file that exports one. `rath resume` and `rath replay` use it. */
  readonly model?: string
}

/**
 * What a run's row says of its code, with a mark that only this user's programs can make: a store may have come with a folder, or been written by
 * whoever could write into it, and the code that such a record names is not loaded unasked. Without a place for the key there is no mark.
 */
export function sealed({ file, export: name, model }: RunModule): RunModule & { readonly seal?: string } {
  const module = { file, ...(name !== undefined && { export: name }), ...(model !== undefined && { model }) }
  const key = keyHere('make')
  return key === undefined ? module : { ...module, seal: sealOf(module, key) }
}

/** Whether a run of this user wrote it. */
export function isSealed(module: Json | undefined): boolean {
  const { seal, ...code } = (module ?? {}) as Partial<RunModule> & { readonly seal?: unknown }
  const { file } = code
  const key = keyHere('read')
  if (typeof file !== 'string' || typeof seal !== 'string' || key === undefined) return false
  const expected = Buffer.from(sealOf({ ...code, file }, key))
  const found = Buffer.from(seal)
  return found.length === expected.length && timingSafeEqual(found, expected)
}

function sealOf({ file, export: name = 'default', model }: RunModule, key: Buffer): string {
  return createHmac('sha256', key)
    .update(JSON.stringify(['code of a run', file, name, ...(model === undefined ? [] : [model])]))
    .digest('hex')
}

/** A key of 32 bytes in the user's own folder, for nobody else to read. */
function keyHere(how: 'make' | 'read'): Buffer | undefined {
  try {
    const folder = ownFolder(processSurroundings())
    const path = join(folder, 'runs.key')
    const found = read(path)
    if (found !== undefined || how === 'read') return found
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const written = `${path}.${newId()}`
    writeFileSync(written, randomBytes(32), { mode: 0o600, flag: 'wx' })
    try {
      // The first to name it decides, and nobody reads half of it.
      linkSync(written, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(written, { force: true })
    }
    return read(path)
  } catch {
    return undefined
  }
}

function read(path: string): Buffer | undefined {
  try {
    const key = readFileSync(path)
    return key.length === 32 ? key : undefined
  } catch {
    return undefined
  }
}

/** The options of a call that a resumed run has to go on under. */
interface Limits {
  readonly policy?: object | undefined
  readonly budget?: BudgetLimits | undefined
  readonly approveWithin?: number | undefined
  readonly onBudget?: 'return' | 'throw' | undefined
}

/** What the row of a run keeps of them. A policy may be code: only that there is one. */
export function keptLimits({ policy, budget, approveWithin, onBudget }: Limits): JsonObject {
  const limits = Object.entries(budget ?? {}).filter(([, limit]) =>
    Number.isFinite(typeof limit === 'object' ? limit.limit : limit),
  )
  return {
    ...(policy && { policy: true }),
    ...(limits.length > 0 && { budget: Object.fromEntries(limits) }),
    ...(onBudget && { onBudget }),
    ...(Number.isFinite(approveWithin) && { approveWithin: approveWithin as number }),
  }
}

/** The options of a resume: those that the run was begun with, where others are not given. A policy has to be. */
function withLimits({ id, data }: RunRow, given: Limits): Limits {
  if (data.policy === true && given.policy === undefined) {
    throw new RathError(
      'invalid-argument',
      `Run ${id} was begun with a policy, which is code and not on record; without it, what it denied would be done. Give it again, in code: runtime.resume(${show(id)}, workflow, { policy }).`,
      { data: { run: id } },
    )
  }
  const kept = data as Limits
  const { budget = kept.budget, approveWithin = kept.approveWithin, onBudget = kept.onBudget } = given
  return {
    ...given,
    ...(budget && { budget }),
    ...(onBudget && { onBudget }),
    ...(approveWithin !== undefined && { approveWithin }),
  }
}
