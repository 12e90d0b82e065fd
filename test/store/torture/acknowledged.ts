import type { Store } from '../../../src/store/spec.ts'

/** What writers were told is kept: for each session, the digest that must stand at each length. */
export class Acknowledged {
  readonly #heads = new Map<string, Map<number, string>>()
  count = 0

  /** Takes a line that writer.ts printed; says whether it was an acknowledgement. A line cut off by death is none. */
  add(line: string): boolean {
    const [, id, length, head] = /^ack (\S+) (\d+) ([0-9a-f]{64})$/.exec(line) ?? []
    if (id === undefined) return false
    const heads = this.#heads.get(id) ?? new Map<number, string>()
    this.#heads.set(id, heads.set(Number(length), head as string))
    this.count++
    return true
  }

  /** Everything that is missing from the store or wrong in it, one sentence each. */
  async problems(store: Store): Promise<string[]> {
    const problems: string[] = []
    for (const [id, heads] of this.#heads) {
      const session = await store.sessions.get(id).catch((error: unknown) => String(error))
      if (typeof session === 'string') {
        problems.push(`${id}: ${session}`)
        continue
      }
      const chunks = [...session.chunks]
      for (const [length, head] of heads) {
        if (chunks[length - 1]?.id !== head) problems.push(`${id}: chunk ${length} is not ${head}`)
      }
    }
    return [...problems, ...(await damaged(store))]
  }
}

/** Every session of the store that does not verify, acknowledged or not. */
export async function damaged(store: Store): Promise<string[]> {
  const problems: string[] = []
  let cursor: string | undefined
  do {
    const page = await store.sessions.list({ limit: 1000, ...(cursor !== undefined && { cursor }) })
    for (const { id, length, head } of page.rows) {
      const session = await store.sessions.get(id)
      const { ok, problem } = session.verify()
      if (!ok) problems.push(`${id}: ${problem?.reason}`)
      if (session.length < length || (length > 0 && session.chunks.at(length - 1)?.id !== head))
        problems.push(`${id}: the row and the chunks differ`)
    }
    cursor = page.cursor
  } while (cursor !== undefined)
  return problems
}
