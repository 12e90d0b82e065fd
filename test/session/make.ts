import { digestOf } from '../../src/base/digest.ts'
import { RathError } from '../../src/base/errors.ts'
import type { Json } from '../../src/base/json.ts'
import type { ChunkInput } from '../../src/session/chunk.ts'
import type { SessionFiles } from '../../src/session/files.ts'
import type { Session } from '../../src/session/session.ts'

/** Short ways to write chunks, all at one time so that their ids are the same in every run. */
const at = 1000

export const user = (text: string): ChunkInput => ({ kind: 'user', text, at })
export const says = (text: string, usage?: object): ChunkInput => ({
  kind: 'assistant',
  text,
  at,
  ...(usage && { usage }),
})
export const note = (name: string): ChunkInput => ({ kind: 'note', name, at })

/** An answer that asks for tools, one call an id. */
export const calls = (...ids: string[]): ChunkInput => ({
  kind: 'assistant',
  toolCalls: ids.map(id => ({ id, name: 'look', args: { id } })),
  at,
})
export const result = (callId: string, value: Json = `result of ${callId}`): ChunkInput => ({
  kind: 'tool-result',
  callId,
  tool: 'look',
  args: { id: callId },
  outcome: { kind: 'value', value },
  at,
})

/** A summary in place of the chunks at these indexes. */
export function compressed(session: Session, indexes: readonly number[], summary = 'in short'): Session {
  const replaced = indexes.map(index => session.chunks.at(index)?.id as string)
  return session.append({ kind: 'compress', replaced, summary, at })
}

/** The texts of a session's chunks, merge records left out. */
export function texts(session: Session): string[] {
  return session.chunks.filter(chunk => chunk.kind !== 'merge').map(chunk => chunk.text)
}

/** The messages as one line each: role, then what it says, asks or answers. */
export function spoken(session: Session): string[] {
  return session.messages().map(message => {
    if (message.role === 'tool') {
      const { outcome } = message
      return `tool ${message.callId}: ${outcome.kind === 'value' ? outcome.value : `(${outcome.kind})`}`
    }
    const parts = message.content.map(part => {
      if (part.type === 'text') return part.text
      return part.type === 'tool-call' ? `${part.name}#${part.id}` : `(${part.type})`
    })
    return `${message.role}: ${parts.join(' ')}`
  })
}

/** The error that a call refuses with; any other error, or none, fails the test. */
export function refusal(run: () => unknown): RathError {
  let returned: unknown
  try {
    returned = run()
  } catch (error) {
    if (error instanceof RathError) return error
    throw error
  }
  throw new Error(`nothing was refused; it returned ${String(returned)}`)
}

export async function refusalOf(run: Promise<unknown>): Promise<RathError> {
  const error = await run.then(
    value => new Error(`nothing was refused; it gave ${String(value)}`),
    reason => reason,
  )
  if (error instanceof RathError) return error
  throw error
}

/** Files that always fit together: what a merge makes of trees that are only names. */
export const joinAnyFiles: SessionFiles = {
  join: async ({ base, sides }) => ({
    tree: digestOf(['joined', base ?? null, sides.map(side => side.tree)]),
    conflicts: [],
  }),
  changes: async () => [],
}

export async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}
