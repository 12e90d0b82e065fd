import { sha256 } from '../base/digest.ts'
import type { Chunk } from '../session/chunk.ts'
import { identityOf } from '../session/identity.ts'
import type { Session } from '../session/session.ts'
import { cleanText } from './check.ts'
import { piecesOf } from './pieces.ts'
import type { NewMemory, Scope } from './spec.ts'

/**
 * What a session says and did, as entries that can be found again, without a model: what was said, what was decided, what failed. An
 * entry's key comes from its chunk, so committing a session twice, or a fork of it, or what it was merged into, keeps each once.
 */
export function turnsOf(session: Session): NewMemory[] {
  const names = namesOf(session)
  const { chunks: rejected } = rejectionsOf(session)
  return [...session.chunks].flatMap(chunk => entriesOf(chunk, session, names.get(chunk) as string, rejected))
}

/** One scope for a conversation and every fork of it: `session/` and the beginning of its first chunk's id. */
export function sessionScope(session: Session): Scope {
  const first = session.chunks.at(0)
  return `session/${first ? identityOf(first).slice(0, 16) : session.id}`
}

export interface Rejections {
  /** What the chunks are called in keys that were said or done on what a verdict rejected. */
  readonly chunks: ReadonlySet<string>
  /** What the verdicts name: sessions, branches, chunks. */
  readonly subjects: ReadonlySet<string>
}

/** What the verdicts of a session reject. A later verdict on the same subject counts instead of the earlier. */
export function rejectionsOf(session: Session): Rejections {
  const verdicts = new Map<string, boolean>()
  const { operation, parents } = session.lineage
  // A fork or a merge stands on another branch than what it was made of.
  const own = operation === 'fork' || operation === 'merge' ? [session.id] : [session.id, ...parents]
  const branchOf = new Map<string, string>(own.map(id => [id, session.branch]))
  for (const chunk of session.chunks) {
    if (chunk.kind === 'verdict') verdicts.set(chunk.subject, chunk.verdict === 'reject')
    if (chunk.kind === 'merge') for (const side of chunk.branches) branchOf.set(side.session, side.branch)
  }
  const subjects = new Set([...verdicts].filter(([, isRejected]) => isRejected).map(([subject]) => subject))
  const chunks = new Set<string>()
  if (subjects.size === 0) return { chunks, subjects }
  const branches = [...subjects].map(subject => branchOf.get(subject) ?? subject)
  const names = namesOf(session)
  for (const chunk of session.chunks) {
    const { branch = '' } = chunk
    const isRejected =
      subjects.has(chunk.id) || subjects.has(identityOf(chunk)) || branches.some(one => isOn(branch, one))
    if (isRejected && chunk.kind !== 'verdict') chunks.add(names.get(chunk) as string)
  }
  return { chunks, subjects }
}

/**
 * Ids of entries that the session itself wrote, by its own record, into a store: a commit of the session adopts them, and marks those that were
 * written on what a verdict rejected. And of those that it forgot there.
 */
export function rememberedIn(
  session: Session,
  store: string,
  { chunks }: Rejections = rejectionsOf(session),
): { readonly adopted: string[]; readonly rejected: string[]; readonly forgotten: string[] } {
  const adopted = new Set<string>()
  const rejected = new Set<string>()
  const forgotten = new Set<string>()
  const names = chunks.size > 0 ? namesOf(session) : undefined
  for (const chunk of session.chunks) {
    if (chunk.kind !== 'memory' || chunk.store !== store || chunk.op === 'recall') continue
    const isRejected = chunks.has(names?.get(chunk) ?? '')
    const ids = chunk.op === 'forget' ? forgotten : isRejected ? rejected : adopted
    for (const id of chunk.entries ?? []) {
      for (const set of [adopted, rejected, forgotten]) set.delete(id)
      ids.add(id)
    }
  }
  return { adopted: [...adopted], rejected: [...rejected], forgotten: [...forgotten] }
}

/** Begins the keys of what is made of chunks: what the chunk is called follows. */
export const chunkKey = 'chunk/'

/**
 * Calls chunks by what they say, the branch they say it on, and which of equal ones they are. Their ids cover times, and a run that goes on
 * after a crash makes its chunks again: what it kept before is not to be kept twice.
 */
function namesOf(session: Session): ReadonlyMap<Chunk, string> {
  const names = new Map<Chunk, string>()
  const counts = new Map<string, number>()
  for (const chunk of session.chunks) {
    const said = JSON.stringify([chunk.branch ?? '', chunk.kind, sayingOf(chunk)?.text ?? ''])
    const count = counts.get(said) ?? 0
    counts.set(said, count + 1)
    names.set(chunk, sha256(`${count} ${said}`))
  }
  return names
}

function isOn(branch: string, rejected: string): boolean {
  return branch === rejected || (rejected !== '' && branch.startsWith(`${rejected}/`))
}

function entriesOf(chunk: Chunk, session: Session, name: string, rejected: ReadonlySet<string>): NewMemory[] {
  const said = sayingOf(chunk)
  if (said === undefined || said.text.trim() === '') return []
  const identity = identityOf(chunk)
  const pieces = said.text.length > longestTurn ? piecesOf(said.text) : [said.text]
  return pieces.map((piece, i) => ({
    text: cleanText(said.who && i === 0 ? `${said.who}: ${piece}` : piece),
    category: said.category,
    at: chunk.at,
    key: i === 0 ? chunkKey + name : `${chunkKey}${name}/${i}`,
    source: {
      session: session.id,
      chunks: [identity],
      series: seriesOf(session, chunk),
      index: chunk.index + i / pieces.length,
      ...(chunk.by !== undefined && { by: chunk.by }),
    },
    ...(rejected.has(name) && { standing: 'rejected' as const }),
  }))
}

/** What is longer is kept in pieces. */
const longestTurn = 4_000
/** How much of a call's arguments a failure shows. */
const longestArguments = 400

/** Branches of a conversation are told apart: what was said on a sibling is no neighbour. */
function seriesOf(session: Session, chunk: Chunk): string {
  return chunk.branch === undefined ? sessionScope(session) : `${sessionScope(session)}/${chunk.branch}`
}

interface Saying {
  readonly category: string
  readonly text: string
  readonly who?: string
}

function sayingOf(chunk: Chunk): Saying | undefined {
  switch (chunk.kind) {
    case 'user':
      return { category: 'turn', who: 'user', text: chunk.text }
    case 'assistant':
      return { category: 'turn', who: nameOf(chunk.by) ?? 'assistant', text: chunk.text }
    case 'tool-result': {
      if (chunk.outcome.kind === 'value') return undefined
      const args =
        chunk.args === undefined ? '' : ` with ${JSON.stringify(chunk.args).slice(0, longestArguments)}`
      const verb = chunk.outcome.kind === 'denied' ? 'was not allowed' : 'failed'
      return { category: 'failure', text: `The tool ${chunk.tool} ${verb}${args}: ${chunk.text}` }
    }
    case 'error':
      return { category: 'failure', text: chunk.text }
    case 'route': {
      const names = chunk.candidates.map(({ name }) => name).join(', ')
      const choice = chunk.choice === null ? 'None was chosen' : `${chunk.choice} was chosen`
      return { category: 'decision', text: `${choice} of ${names}${chunk.reason ? `: ${chunk.reason}` : ''}` }
    }
    case 'verdict': {
      const verb = chunk.verdict === 'accept' ? 'accepted' : 'rejected'
      return {
        category: 'decision',
        text: `${chunk.subject} was ${verb}${chunk.reason ? `: ${chunk.reason}` : ''}`,
      }
    }
    case 'approval': {
      if (chunk.verdict === undefined) return undefined
      return { category: 'decision', text: `Asked and ${chunk.text}` }
    }
    case 'compress':
      return { category: 'summary', text: chunk.summary }
    default:
      return undefined
  }
}

function nameOf(by: string | undefined): string | undefined {
  return by?.split('/').at(-1) || undefined
}
