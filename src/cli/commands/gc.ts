import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Digest } from '../../base/digest.ts'
import { asJson, type Json } from '../../base/json.ts'
import { Workspaces } from '../../run/place/workspaces.ts'
import { leftovers } from '../../sandbox/drivers/docker/leftovers.ts'
import { leftCommands } from '../../sandbox/drivers/local/left-by.ts'
import { kill } from '../../sandbox/drivers/local/processes.ts'
import { leftFolders } from '../../sandbox/host/folder.ts'
import { removeFolder } from '../../sandbox/host/remove-folder.ts'
import { collectLeftovers, sizeOf } from '../../sandbox/workspace/fork/leftovers.ts'
import { type LeftBy, projectOf } from '../../sandbox/workspace/fork/owner.ts'
import type { ObjectStore } from '../../sandbox/workspace/objects.ts'
import { type PruneReport, prune } from '../../sandbox/workspace/prune.ts'
import type { ChunkRecord, GcReport, RunRow, Store } from '../../store/spec.ts'
import { examples, type JsonOption, type StoreOption, timeSpan, withJson, withStore } from '../command.ts'
import { UsageError } from '../errors.ts'
import type { Output } from '../output.ts'
import { whileWorking } from '../progress.ts'
import { missingStore, openToRead } from '../runtime.ts'
import { count, size } from '../text.ts'

const anHour = 3_600_000

interface Options extends StoreOption, JsonOption {
  readonly dryRun?: boolean
  readonly olderThan: number
  readonly files?: boolean
  readonly machine?: boolean
  readonly alsoStore?: readonly string[]
}

interface Report {
  readonly dryRun: boolean
  /** Undefined where there is none. */
  readonly store?: GcReport
  readonly branches: { readonly folders: number; readonly bytes: number; readonly kept: number }
  /** Of sandboxes whose processes have ended. */
  readonly temporary: { readonly folders: number; readonly bytes: number }
  readonly commands: number
  readonly containers: number
  readonly files?: PruneReport & { readonly trees: number; readonly placements: number }
}

export function define(command: Command, output: Output): void {
  command
    .option('--dry-run', 'only say what would go')
    .option('--older-than <time>', 'leave alone what was written since: 30s, 10m, 2h, 7d', timeSpan, anHour)
    .option('--machine', 'also what programs left that were started in other folders, or by older versions')
    .option('--files', 'also files that no session of this store, nor of those in --also-store, speaks of')
    .option('--also-store <addresses...>', 'other stores whose files are kept in the same place')
    .action((options: Options) => collectAll(options, output))
  withStore(withJson(command))
  examples(command, [
    ['rath gc --dry-run', 'what would be freed'],
    ['rath gc', 'what nothing reaches any more, and what killed processes of this project left'],
    ['rath gc --machine', 'also what those of other projects left'],
    [
      'rath gc --files --also-store sqlite:../other/.openrath/rath.db',
      'files too: name every store of this machine',
    ],
  ])
}

async function collectAll(options: Options, output: Output): Promise<void> {
  if (options.files && options.dryRun) {
    throw new UsageError(
      'what --files would free is only known when it is freed; leave out --files or --dry-run.',
    )
  }
  const report = await whileWorking(output, 'looking', () => free(options))
  if (options.json) output.json(report)
  else print(report, output)
}

async function free(options: Options): Promise<Report> {
  const { dryRun = false, olderThan } = options
  // What killed processes left is found without a store, too. One that was asked for has to be there.
  const isNeeded = options.store !== undefined || options.files
  await using store = isNeeded || !missingStore(options) ? await openToRead(options) : undefined
  const workspaces = new Workspaces()
  const freed = await store?.gc({ dryRun, olderThan })
  // What is of other projects is for whoever works there, unless somebody cleans up the machine.
  const folder = options.machine ? undefined : process.cwd()
  const left = { olderThan, project: folder === undefined ? undefined : projectOf(folder) }
  const branches = join(workspaces.folder, 'branches')
  const { removed, kept } = await collectLeftovers(branches, { dryRun, ...left })
  const bytes = removed.reduce((sum, one) => sum + one.bytes, 0)
  const report = {
    dryRun,
    ...(freed && { store: freed }),
    branches: { folders: removed.length, bytes, kept: kept.length },
    commands: commandsLeft(dryRun, olderThan, folder),
    temporary: await temporaryLeft(dryRun, left),
    containers: await containersLeft(dryRun, olderThan, folder),
    ...(options.files && { files: await pruneFiles(workspaces, options) }),
  }
  await workspaces.close()
  return report
}

/** The files of all stores of a machine lie in one place, so every store that may speak of them has to be looked through. */
async function pruneFiles(workspaces: Workspaces, options: Options): Promise<NonNullable<Report['files']>> {
  const { olderThan, alsoStore = [] } = options
  if (!existsSync(join(workspaces.folder, 'objects'))) {
    return { trees: 0, placements: 0, kept: 0, young: 0, removed: 0, before: 0, after: 0 }
  }
  const objects = await workspaces.objects
  const digests = new Set<string>()
  {
    await using own = await openToRead(options)
    for (const digest of await digestsNamedIn(own)) digests.add(digest)
  }
  for (const address of alsoStore) {
    await using other = await openToRead({ store: address })
    for (const digest of await digestsNamedIn(other)) digests.add(digest)
  }
  // Somebody may be writing a tree whose session is not kept yet.
  const young = Math.max(olderThan, anHour)
  const placements = workspaces.forgetBegan(digests, young)
  const trees = treesAmong([...digests, ...workspaces.allBegan(digests)], objects)
  const report = await prune(objects, trees, { olderThan: young })
  return { ...report, trees: trees.size, placements }
}

/** Those that are young may be about to be ended by whoever resumes the run. */
function commandsLeft(keep: boolean, olderThan: number, folder: string | undefined): number {
  const left = leftCommands(Math.max(olderThan, anHour), folder)
  if (!keep) for (const pid of left) kill(pid)
  return left.length
}

async function temporaryLeft(keep: boolean, left: LeftBy): Promise<Report['temporary']> {
  const folders = await leftFolders(tmpdir(), left)
  let bytes = 0
  for (const folder of folders) {
    bytes += await sizeOf(folder)
    if (!keep) await removeFolder(folder)
  }
  return { folders: folders.length, bytes }
}

/** Where there is no engine there is nothing of ours in it. */
async function containersLeft(keep: boolean, olderThan: number, folder: string | undefined): Promise<number> {
  return leftovers({ keep, olderThan, ...(folder !== undefined && { folder }) }).then(
    found => found.length,
    () => 0,
  )
}

function print(
  { dryRun, store, branches, commands, temporary, containers, files }: Report,
  output: Output,
): void {
  const verb = dryRun ? 'would go' : 'gone'
  const freed =
    store && `${count(store.chunks, 'chunk')} and ${count(store.blobs, 'blob')}, ${size(store.bytes)}`
  output.print(`store       ${freed === undefined ? 'none here' : `${freed} ${verb}`}`)
  output.print(
    `branches    ${count(branches.folders, 'folder')} of ended processes, ${size(branches.bytes)} ${verb}`,
  )
  if (branches.kept > 0)
    output.print(`            ${count(branches.kept, 'folder')} of other machines left alone`)
  output.print(`commands    ${count(commands, 'process', 'processes')} of ended programs ${verb}`)
  output.print(
    `temporary   ${count(temporary.folders, 'folder')} of ended programs, ${size(temporary.bytes)} ${verb}`,
  )
  output.print(`containers  ${count(containers, 'container or image', 'containers and images')} ${verb}`)
  if (files) {
    const bytes = `${size(files.before)} before, ${size(files.after)} now`
    output.print(
      `files       ${count(files.removed, 'object')} gone, ${count(files.kept, 'object')} of ${count(files.trees, 'tree')} kept; ${bytes}`,
    )
    if (files.young > 0)
      output.print(`            ${count(files.young, 'object')} too young to be looked at left alone`)
    if (files.placements > 0)
      output.print(`            ${count(files.placements, 'placement')} that nothing speaks of forgotten`)
  }
}

/**
 * Whatever looks like a digest in anything that a store speaks of, wherever it stands: chunks of every kept session, and journals of every
 * run; and the ids of the chunks that placed sessions. To keep too much is safe.
 */
async function digestsNamedIn(store: Store): Promise<Set<Digest>> {
  const digests = new Set<Digest>()
  await eachChunk(store, ({ id, chunk }) => {
    if (chunk.kind === 'placement') digests.add(id)
    collect(asJson(chunk), digests)
  })
  for await (const { id, data } of allRuns(store)) {
    collect(data, digests)
    for (const { request, outcome } of await store.runs.journal(id)) {
      collect(request, digests)
      if (outcome !== undefined) collect(outcome, digests)
    }
  }
  return digests
}

/** Those of trees that are kept. */
function treesAmong(digests: Iterable<Digest>, objects: ObjectStore): Set<Digest> {
  return new Set([...digests].filter(id => objects.has(id) && objects.readAny(id).kind === 'tree'))
}

/** Every chunk once: a session whose newest chunk was seen in another's history has nothing of its own. */
async function eachChunk(store: Store, visit: (record: ChunkRecord) => void): Promise<void> {
  const seen = new Set<Digest>()
  let cursor: string | undefined
  do {
    const page = await store.sessions.list({ limit: 1000, ...(cursor && { cursor }) })
    for (const { id, head } of page.rows) {
      if (head === null || seen.has(head)) continue
      for (const record of await store.sessions.chunks(id)) {
        if (seen.has(record.id)) continue
        seen.add(record.id)
        visit(record)
      }
    }
    cursor = page.cursor
  } while (cursor)
}

async function* allRuns(store: Store): AsyncGenerator<RunRow> {
  let before: string | undefined
  do {
    const page = await store.runs.list({ limit: 1000, ...(before !== undefined && { before }) })
    yield* page
    before = page.at(-1)?.id
  } while (before !== undefined)
}

function collect(value: Json, into: Set<string>): void {
  if (typeof value === 'string') {
    if (/^[0-9a-f]{64}$/.test(value)) into.add(value)
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) collect(part as Json, into)
  }
}
