import { RathError, show } from '../base/errors.ts'
import { asJson, isPlainObject, type Json, type JsonObject } from '../base/json.ts'
import { promptId } from '../run/prompt.ts'
import { Session } from '../session/session.ts'
import type { JournalEntry, NewEntry, Store } from '../store/spec.ts'

/** What one file holds: a run with all that a replay of it needs. Times, owners and leases of the store are left out. */
export interface Cassette {
  readonly format: 'openrath/run'
  readonly version: 1
  /** How the run was begun and by what: the workflow, the version of the library. */
  readonly run: JsonObject
  /** Sessions are lists of the lines of their file format. */
  readonly input: readonly Json[]
  readonly output: readonly Json[]
  /** The instructions of agents, by their digests. */
  readonly prompts: Readonly<Record<string, readonly Json[]>>
  /** In the order of their intents. Tools are described where the kind is `definition`. */
  readonly journal: readonly (NewEntry & { readonly outcome?: Json })[]
}

/** A run that is done, as a cassette. */
export async function cassetteOf(run: string, store: Store): Promise<Cassette> {
  const { data, input, output } = await store.runs.get(run)
  const journal = await store.runs.journal(run)
  const prompts: Record<string, Json[]> = {}
  for (const digest of promptsIn(journal))
    prompts[digest] = linesOf(await store.sessions.get(promptId(digest)))
  return {
    format: 'openrath/run',
    version: 1,
    run: data,
    input: linesOf(await store.sessions.get(input as string)),
    output: linesOf(await store.sessions.get(output as string)),
    prompts,
    journal: journal.map(({ key, occurrence, kind, request, outcome }) => ({
      key,
      occurrence,
      kind,
      request,
      ...(outcome !== undefined && { outcome: withoutTime(outcome) }),
    })),
  }
}

/** Puts a cassette into a store, as the run of this id. Gives the session that went in. */
export async function insert(cassette: Cassette, run: string, store: Store): Promise<Session> {
  const { runs, sessions } = store
  for (const prompt of Object.values(cassette.prompts)) await sessions.put(sessionOf(prompt))
  const input = await sessions.put(sessionOf(cassette.input))
  const output = await sessions.put(sessionOf(cassette.output))
  await runs.create({ id: run, input: input.id, data: cassette.run })
  const log = await runs.claim(run, 'cassette', 60_000)
  for (const { outcome, ...entry } of cassette.journal) {
    const { key, occurrence } = entry
    await log.append([{ kind: 'intend', entry }])
    if (outcome !== undefined) await log.append([{ kind: 'conclude', key, occurrence, outcome }])
  }
  await log.append([{ kind: 'update', change: { status: 'done', output: output.id, release: true } }])
  return input
}

/** The text of a file, with the names of members in one order, so that two recordings differ only where the runs do. */
export function printCassette(cassette: Cassette): string {
  return `${JSON.stringify(ordered(asJson(cassette)), null, 2)}\n`
}

export function parseCassette(text: string, path: string): Cassette {
  const again = 'Take it from version control, or record it again.'
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch (cause) {
    throw new RathError('format-malformed', `${path} is not JSON. ${again}`, { cause })
  }
  const { format, version } = (isPlainObject(found) ? found : {}) as Partial<Cassette>
  if (format !== 'openrath/run') {
    throw new RathError(
      'format-malformed',
      `${path} holds no recorded run: its format is ${show(format)}. ${again}`,
    )
  }
  if (version !== 1) {
    throw new RathError(
      'format-newer',
      `${path} has version ${show(version)} of the format, and this library reads version 1. Update openrath, or record it again.`,
    )
  }
  return found as Cassette
}

function promptsIn(journal: readonly JournalEntry[]): string[] {
  const asked = journal.map(({ request }) => (request as { request?: { prompt?: unknown } } | null)?.request)
  return [...new Set(asked.flatMap(one => (typeof one?.prompt === 'string' ? [one.prompt] : [])))].sort()
}

/** How long an effect took is of no use to a replay, and never the same. */
function withoutTime(outcome: Json): Json {
  const { ms: _, ...rest } = outcome as JsonObject
  return rest
}

function linesOf(session: Session): Json[] {
  return session
    .toJSONL()
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}

function sessionOf(lines: readonly Json[]): Session {
  return Session.fromJSONL(lines.map(line => `${JSON.stringify(line)}\n`).join(''))
}

function ordered(value: Json): Json {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, ordered(member as Json)]),
  )
}
