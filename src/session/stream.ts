import { type ReadOptions, readLines } from './jsonl/read.ts'
import { writeLines } from './jsonl/write.ts'
import { type Session, sessionOf, valueFrom } from './session.ts'
import type { SessionValue } from './value.ts'

/** The lines of a session file that holds all of these; history they share is written once. */
export function* writeSessions(sessions: Iterable<Session>): Generator<string, void, undefined> {
  yield* writeLines(valuesOf(sessions))
}

/** The sessions of a session file, read piece by piece: each is yielded when its section ends. */
export async function* readSessions(
  source: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  options?: ReadOptions,
): AsyncGenerator<Session, void, undefined> {
  for await (const { value, damage } of readLines(source, options)) yield sessionOf(value, damage)
}

function* valuesOf(sessions: Iterable<Session>): Generator<SessionValue, void, undefined> {
  for (const session of sessions) yield valueFrom(session)
}
