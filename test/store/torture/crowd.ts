import { join } from 'node:path'
import { Session } from '../../../src/session/session.ts'
import { openStore } from '../../../src/store/open.ts'
import { runFile } from '../program.ts'

export interface Crowd {
  readonly sessions: number
  readonly processes: number
  readonly appends: number
}

/** Processes that append at the same time, spread over sessions. Returns what is wrong afterwards, one sentence each. */
export async function crowd(url: string, { sessions, processes, appends }: Crowd): Promise<string[]> {
  await using store = await openStore(url, { secrets: {}, durability: 'normal' })
  const ids: string[] = []
  for (let i = 0; i < sessions; i++) ids.push((await store.sessions.put(Session.create('empty'))).id)
  const expected = new Map(ids.map(id => [id, new Set<string>()]))
  const file = join(import.meta.dirname, 'appender.ts')
  const running = Array.from({ length: processes }, (_, process) => {
    const id = ids[process % sessions] as string
    for (let i = 0; i < appends; i++) expected.get(id)?.add(`process-${process} ${i}`)
    return runFile(file, url, id, `process-${process}`, String(appends))
  })
  const problems: string[] = []
  for (const [i, program] of running.entries()) {
    const end = await program.ended()
    if (end !== 0) problems.push(`process ${i} ended with ${end}`)
  }
  for (const [id, texts] of expected) {
    const session = await store.sessions.get(id)
    if (!session.verify().ok) problems.push(`${id} does not verify`)
    if (session.length !== texts.size) problems.push(`${id} has ${session.length} chunks, not ${texts.size}`)
    for (const chunk of session.chunks) texts.delete(chunk.text)
    if (texts.size > 0) problems.push(`${id} has lost ${texts.size} chunks`)
  }
  return problems
}
