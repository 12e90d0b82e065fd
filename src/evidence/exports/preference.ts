import { commonAncestor } from '../../session/ancestor.ts'
import { chunksFrom, lengthOf } from '../../session/chain.ts'
import type { Chunk } from '../../session/chunk.ts'
import { identityOf } from '../../session/identity.ts'
import type { Message } from '../../session/message.ts'
import { type Session, valueFrom } from '../../session/session.ts'
import { viewMessages } from '../../session/summary.ts'
import { type OpenAIMessage, openAIMessages } from './openai.ts'

/** Two ways to go on from one point, of which one was judged better. */
export interface PreferencePair {
  /** What both had before them. */
  readonly prompt: readonly OpenAIMessage[]
  readonly chosen: readonly OpenAIMessage[]
  readonly rejected: readonly OpenAIMessage[]
  /** What the judges said: of the chosen one, of the rejected one. */
  readonly reason: string
  readonly sessions: { readonly chosen: string; readonly rejected: string }
  readonly judges: readonly string[]
}

export interface PreferenceOptions {
  /**
   * Counts the branches that were joined with an accepted one and not judged themselves as rejected. Default false: that a branch was not
   * picked may only mean that it was not the first.
   */
  readonly unpicked?: boolean
}

/**
 * Pairs for preference training, from verdicts on sibling branches: every accepted one with every rejected one that left the history at the
 * same chunk. A verdict names its subject by session id, branch, or chunk id; the subjects must be among the sessions.
 */
export function preferencePairs(
  sessions: Iterable<Session>,
  options: PreferenceOptions = {},
): PreferencePair[] {
  const all = [...sessions]
  const judged = judgements(all, options.unpicked ?? false)
  const accepted = judged.filter(({ verdict }) => verdict === 'accept')
  const rejected = judged.filter(({ verdict }) => verdict === 'reject')
  return accepted.flatMap(chosen => rejected.flatMap(other => pairOf(chosen, other) ?? []))
}

interface Judged {
  readonly session: Session
  readonly verdict: 'accept' | 'reject'
  readonly reason: string
  readonly judge: string | undefined
}

/** The last verdict on each session counts. */
function judgements(sessions: readonly Session[], unpicked: boolean): Judged[] {
  const seen = new Set<string>()
  const found = new Map<string, Judged>()
  for (const holder of sessions) {
    for (const chunk of holder.chunks) {
      if (chunk.kind !== 'verdict' || seen.has(identityOf(chunk))) continue
      seen.add(identityOf(chunk))
      const session = subjectOf(chunk, holder, sessions)
      if (!session) continue
      const { verdict, reason = '', by: judge } = chunk
      found.set(session.id, { session, verdict, reason, judge })
      if (unpicked && verdict === 'accept')
        for (const other of passedOver(chunk, session, holder, sessions))
          if (!found.has(other.id))
            found.set(other.id, { session: other, verdict: 'reject', reason: '', judge })
    }
  }
  return [...found.values()]
}

/** By id; by branch, of those that share history with the judge; by a chunk, as the session was then. */
function subjectOf(
  { subject }: Chunk<'verdict'>,
  holder: Session,
  sessions: readonly Session[],
): Session | undefined {
  const byId = sessions.find(session => session.id === subject)
  if (byId) return byId
  const onBranch = sessions.filter(session => session.branch === subject && session !== holder)
  const related = onBranch.filter(session => sharedLength(session, holder) > 0)
  if (related.length > 0) return related.reduce((one, other) => (other.length > one.length ? other : one))
  if (!/^[0-9a-f]{64}$/.test(subject)) return undefined
  const holding = sessions.find(session => session.chunks.findLast(chunk => chunk.id === subject))
  return holding?.rewind(subject)
}

/** The sessions that the join before a verdict left out. */
function passedOver(
  chunk: Chunk,
  accepted: Session,
  holder: Session,
  sessions: readonly Session[],
): Session[] {
  const join = holder.chunks.slice(0, chunk.index).findLast(({ kind }) => kind === 'merge')
  if (join?.kind !== 'merge' || !join.branches.some(({ session }) => session === accepted.id)) return []
  const others = join.branches.filter(({ session }) => session !== accepted.id)
  return others.flatMap(({ session }) => sessions.find(({ id }) => id === session) ?? [])
}

function pairOf(chosen: Judged, rejected: Judged): PreferencePair | undefined {
  const [left, right] = [valueFrom(chosen.session).tip, valueFrom(rejected.session).tip]
  const base = commonAncestor(left, right)
  const shared = lengthOf(base)
  const own = [chosen.session, rejected.session].map(({ length }) => length - shared)
  if (base === undefined || own.includes(0)) return undefined
  const prompt = viewMessages(chunksFrom(base, 0))
  const [better, worse] = [left, right].map(tip => since(prompt, viewMessages(chunksFrom(tip, 0))))
  if (!better?.length || !worse?.length) return undefined
  const judges = [chosen.judge, rejected.judge].filter(judge => judge !== undefined)
  return {
    prompt: openAIMessages(prompt),
    chosen: openAIMessages(better),
    rejected: openAIMessages(worse),
    reason: [chosen.reason, rejected.reason].filter(Boolean).join('; '),
    sessions: { chosen: chosen.session.id, rejected: rejected.session.id },
    judges: [...new Set(judges)],
  }
}

/** What a view has behind its beginning. A summary or an answer in between may have changed that: then there is no pair. */
function since(beginning: readonly Message[], whole: readonly Message[]): Message[] | undefined {
  const isSame = beginning.every((message, i) => JSON.stringify(message) === JSON.stringify(whole[i]))
  return isSame ? whole.slice(beginning.length) : undefined
}

function sharedLength(one: Session, other: Session): number {
  return lengthOf(commonAncestor(valueFrom(one).tip, valueFrom(other).tip))
}
