import { RathError, show } from '../base/errors.ts'
import { currentContext } from '../run/context.ts'
import type { ChunkInput } from '../session/chunk.ts'
import { checkOnConflict, type OnConflict } from '../session/files.ts'
import { commonLane, type Lane, rootLane } from '../session/lane.ts'
import { onLane } from '../session/lineage.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import type { Ended } from './fan-out.ts'
import { Workflow } from './workflow.ts'

/**
 * How branches become one session again. `merge`: everything they did, one after the other. `first`: what the first that succeeds did;
 * the rest are cancelled. A workflow: the judge, which is given the merge. A function of the branches' sessions, which picks one of
 * them or makes another.
 */
export type Join = 'merge' | 'first' | Judge | JoinBranches

export interface JoinOptions {
  /** `merge` by default. */
  readonly join?: Join
  /** What becomes of files that the branches changed differently, as in `session.merge`; `refuse` by default. */
  readonly onConflict?: OnConflict
}

/** Any workflow. Written without its call signature, so that an editor knows the parameters of a function in its place. */
export type Judge = Pick<Workflow, 'forward' | 'compile'>

export type JoinBranches = (
  /** In the order of the branches; without those that were dropped. */
  branches: readonly Session[],
  facts: {
    /** What was forked. */
    readonly session: Session
    /** Of each branch in `branches`. */
    readonly labels: readonly string[]
  },
) => Session | Promise<Session>

/**
 * The one session after a fan-out, back on the branch that was forked. What is left out, because it was dropped, cancelled or not
 * picked, stays in the lineage, its cost is counted, and why it is gone is on the record.
 */
export async function joinBranches(
  session: Session,
  ended: readonly Ended[],
  { join = 'merge', onConflict = 'refuse' }: JoinOptions,
): Promise<Session> {
  const kept = ended.filter(hasSession)
  const sessions = kept.map(end => end.session)
  const joined = await together(session, kept, join, onConflict)
  const picked = sessions.indexOf(joined)
  const isPick = picked >= 0
  const others = [...leftOut(joined, sessions, join), ...ended.flatMap(partials)]
  const whole = isPick || others.length > 0 ? await without(joined, others, session, onConflict) : joined
  const chunks = [
    ...(isPick && ended.length > 1 ? [verdict((kept[picked] as Ended).label, joined, join)] : []),
    ...ended.flatMap(failureChunks),
  ]
  return chunks.length > 0 ? whole.append(...chunks) : whole
}

/** Only what the join makes of the branches that ended well; one of them when it picks. */
async function together(
  session: Session,
  kept: readonly (Ended & { session: Session })[],
  join: Join,
  onConflict: OnConflict,
): Promise<Session> {
  const sessions = kept.map(end => end.session)
  if (join === 'first') return kept.find(end => end.isFirst)?.session as Session
  if (join === 'merge') return merged(session, sessions, onConflict)
  if (join instanceof Workflow) return join(await merged(session, sessions, onConflict))
  const labels = kept.map(end => end.label)
  const made: unknown = await (join as JoinBranches)(sessions, { session, labels })
  if (made instanceof Session) return made
  throw new RathError('invalid-argument', `A join must return a Session, not ${show(made)}.`)
}

function merged(session: Session, branches: readonly Session[], onConflict: OnConflict): Promise<Session> {
  const options = { onConflict, ...signed() }
  const near = branches.map(branch => broughtTo(session, branch))
  const [first, ...rest] = near
  if (first === undefined) return Promise.resolve(session)
  return meetAt(session, near) ? first.merge(rest, options) : session.merge(near, options)
}

function without(
  joined: Session,
  others: readonly Session[],
  session: Session,
  onConflict: OnConflict,
): Promise<Session> {
  const [ours, ...rest] = [joined, ...others].map(one => broughtTo(session, one)) as [Session, ...Session[]]
  const parties = meetAt(session, [ours, ...rest]) ? rest : [...rest, session]
  return ours.merge(parties, { policy: 'ours', onConflict, ...signed() })
}

/** A session from elsewhere is merged where it was forked: it does not take the work of the others with it, nor their files. */
function broughtTo(session: Session, other: Session): Session {
  const { branch, lineage } = valueFrom(session)
  if (commonLane([laneOf(other), laneOf(session)]) === laneOf(session)) return other
  const value = valueFrom(other)
  return sessionOf({ ...value, branch, lineage: onLane(value.lineage, lineage.lane) })
}

/** Whether a merge of them alone comes back to where they were forked: one branch does not, nor do two that are the same. */
function meetAt(session: Session, sessions: readonly Session[]): boolean {
  return sessions.length > 1 && commonLane(sessions.map(laneOf)) === laneOf(session)
}

function laneOf(session: Session): Lane {
  return valueFrom(session).lineage.lane ?? rootLane
}

function hasSession(end: Ended): end is Ended & { session: Session } {
  return end.session !== undefined
}

/** Branches that the joined session does not come from. What it has of them in spite of that is counted once all the same. */
function leftOut(joined: Session, sessions: readonly Session[], join: Join): Session[] {
  if (join === 'merge' || join instanceof Workflow) return []
  const { parents } = joined.lineage
  return sessions.filter(session => session !== joined && !parents.includes(session.id))
}

/** What attempts did before they failed. */
function partials({ failures, inputs }: Ended): Session[] {
  const begun = new Set(inputs.map(({ id }) => id))
  return failures.flatMap(({ session }) =>
    session instanceof Session && !begun.has(session.id) ? [session] : [],
  )
}

function verdict(label: string, { id }: Session, join: Join): ChunkInput {
  const reason = join === 'first' ? `${label} was first` : `${label} was picked`
  return { kind: 'verdict', verdict: 'accept', subject: id, reason, ...signed() }
}

function failureChunks({ label, failures, session, isStopped }: Ended): ChunkInput[] {
  return failures
    .filter((error, i) => !(isStopped && i === failures.length - 1 && error.code === 'cancelled'))
    .map((error, i) => ({
      kind: 'error',
      error: error.code,
      message: `The branch ${label} failed${session ? '' : ' and was left out'}: ${error.message}`,
      attempt: i + 1,
      retry: error.retry,
      ...signed(),
    }))
}

function signed(): { by?: string } {
  const by = currentContext()?.by
  return by === undefined ? {} : { by }
}

export function checkJoin({ join = 'merge', onConflict }: JoinOptions, what: string): void {
  checkOnConflict(onConflict, what)
  if (join === 'merge' || join === 'first' || typeof join === 'function') return
  throw new RathError(
    'invalid-argument',
    `${what}: join is 'merge', 'first', a workflow that judges, or a function of the branches, not ${show(join)}.`,
  )
}
