import type { Client } from '@modelcontextprotocol/client'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isPlainObject } from '../../base/json.ts'

/** A server whose list never ends is stopped here. */
const mostPages = 100

/** Everything that a server lists, page by page. */
export async function allPages(client: Client, timeout: number): Promise<unknown[]> {
  const tools: unknown[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const request = { method: 'tools/list', ...(cursor !== undefined && { params: { cursor } }) }
    const answer = await client.request(request, rawList, { timeout })
    tools.push(...answer.tools)
    cursor = answer.cursor
    // A cursor that comes back would go round for ever.
    if (cursor === undefined || seen.has(cursor)) break
    seen.add(cursor)
  }
  return tools
}

/** Only what is needed of a list, so that one wrong entry does not lose the others. */
const rawList: StandardSchemaV1<unknown, { tools: unknown[]; cursor: string | undefined }> = {
  '~standard': {
    version: 1,
    vendor: 'openrath',
    validate(answer) {
      if (!isPlainObject(answer) || !Array.isArray(answer.tools)) {
        return { issues: [{ message: 'the list of tools has no tools' }] }
      }
      const { tools, nextCursor } = answer
      const cursor = typeof nextCursor === 'string' ? nextCursor : undefined
      return { value: { tools, cursor } }
    },
  },
}
