import { RathError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { chunksFrom, link, mismatchIn } from './chain.ts'
import type { Chunk } from './chunk.ts'
import { identityOf } from './identity.ts'
import { lineage } from './lineage.ts'
import { withField } from './parse.ts'
import { damageOf, type Session, sessionOf, valueFrom } from './session.ts'
import { tipAfter } from './value.ts'
import type { VerificationProblem } from './verify.ts'

/**
 * What is wrong with a session that was read from a store or a file: the first chunk whose content does not give its id, or what reading the
 * file found. Chunks made in this process, and those it has looked at before, cost nothing; `session.verify()` looks at all of them again.
 */
export function alterationOf(session: Session): VerificationProblem | undefined {
  const found = mismatchIn(valueFrom(session).tip)
  if (found === undefined) return damageOf(session)
  const { at, chunk, expected } = found
  const { index, id, kind } = chunk
  return {
    index: at.index,
    id,
    reason: `chunk ${index} (${kind}) is recorded as ${id} and its content gives ${expected}`,
  }
}

/** Throws `session-altered` where an agent must not act on a session. */
export function refuseAltered(session: Session): void {
  const problem = alterationOf(session)
  if (problem === undefined) return
  const { index, id, reason } = problem
  const rewind = index !== undefined && index > 0 ? `continue from before it with rewind(${index - 1}), ` : ''
  throw new RathError(
    'session-altered',
    `Session ${session.id} is not as it was recorded: ${reason}. Nothing was done with it. Look at it with rath verify, ${rewind}` +
      "bring the store or the file back from a copy, or go ahead with { altered: 'accept' } (rath: --accept-altered), which is put on the record.",
    {
      data: {
        session: session.id,
        ...(index !== undefined && { index }),
        ...(id !== undefined && { chunk: id }),
      },
    },
  )
}

/**
 * The session as it is now, with a note that says what was wrong and that somebody went ahead. The altered chunk and those behind it get the
 * ids that their content gives, so that the new session verifies; the session itself when nothing was wrong.
 */
export function acceptAltered(session: Session): Session {
  const problem = alterationOf(session)
  if (problem === undefined) return session
  const value = valueFrom(session)
  const { index } = problem
  let tip = index === undefined || index === 0 ? undefined : session.chunks.at(index - 1)
  if (index === undefined) tip = value.tip
  else for (const chunk of chunksFrom(value.tip, index)) tip = asItIs(tip, chunk)
  const { reason, id } = problem
  const note = {
    kind: 'note',
    name: 'altered',
    data: { session: value.id, reason, ...(id && { chunk: id }) },
  }
  const at = Date.now()
  const { parents, lane } = value.lineage
  return sessionOf({
    id: newId(),
    tip: tipAfter({ ...value, tip }, [note], at),
    branch: value.branch,
    lineage: lineage('accept', parents, { at, extras: { altered: value.id } }, lane),
    files: value.files,
  })
}

/** Not a copy as others are: what it is made of is known to be wrong, and was accepted. */
function asItIs(previous: Chunk | undefined, chunk: Chunk): Chunk {
  return link(previous, withField(chunk, { origin: identityOf(chunk) }))
}
