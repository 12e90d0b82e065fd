import { RathError, show } from '../base/errors.ts'
import type { RunRow, Store } from '../store/spec.ts'

/** The newest runs that a short name is looked for in. */
const searched = 1000

/** The run that a name means: its id, the beginning or end of it, or `last`. */
export async function findRun(store: Store, name: string): Promise<RunRow> {
  const exact = await store.runs.get(name).catch(error => {
    if (error instanceof RathError && error.code === 'unknown-run') return undefined
    throw error
  })
  if (exact) return exact
  const rows = await store.runs.list({ limit: searched })
  if (name === 'last' && rows[0]) return rows[0]
  const named = rows.filter(({ id }) => name.length >= 4 && (id.startsWith(name) || id.endsWith(name)))
  if (named.length === 1) return named[0] as RunRow
  if (named.length > 1) {
    const ids = named.map(({ id }) => id)
    throw new RathError(
      'unknown-run',
      `${show(name)} fits ${named.length} runs: ${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ', …' : ''}. Give more of it.`,
      { data: { candidates: ids.slice(0, 20) } },
    )
  }
  const near = nearestRuns(name, rows)
  throw new RathError(
    'unknown-run',
    `There is no run ${show(name)}.${near.length > 0 ? ` Nearest: ${near.join(', ')}.` : ' The store has none like it; see rath ls runs.'}`,
    { data: { nearest: near } },
  )
}

/** A session or a run, whichever has the name. */
export async function findEither(
  store: Store,
  name: string,
): Promise<{ readonly session: string; readonly run?: undefined } | { readonly run: RunRow }> {
  try {
    return { session: (await store.sessions.row(name)).id }
  } catch (error) {
    if (!(error instanceof RathError) || error.code !== 'unknown-session') throw error
    try {
      return { run: await findRun(store, name) }
    } catch (other) {
      if (!(other instanceof RathError) || other.data.candidates !== undefined) throw other
      const nearest = [error, other].flatMap(one => (one.data.nearest ?? []) as string[])
      const hint = nearest.length > 0 ? `Nearest: ${nearest.join(', ')}.` : 'See rath ls and rath ls runs.'
      throw new RathError('unknown-session', `There is no session and no run ${show(name)}. ${hint}`, {
        data: { nearest },
      })
    }
  }
}

/** What a run made, or was given when it has made nothing yet. */
export async function findSession(store: Store, name: string): Promise<string> {
  const found = await findEither(store, name)
  if (found.run === undefined) return found.session
  const { id, output, input } = found.run
  const session = output ?? input
  if (session !== null) return session
  throw new RathError('unknown-session', `Run ${id} has no session yet.`)
}

/** Ids that share the longest beginning with a name. */
function nearestRuns(name: string, rows: readonly RunRow[]): string[] {
  for (let length = Math.min(name.length - 1, 36); length >= 4; length--) {
    const near = rows.filter(({ id }) => id.startsWith(name.slice(0, length)))
    if (near.length > 0) return near.slice(0, 3).map(({ id }) => id)
  }
  return []
}

/** Whether a session only holds an agent's instructions, for others to refer to. */
export function isPrompt(id: string): boolean {
  return id.startsWith('prompt-')
}
