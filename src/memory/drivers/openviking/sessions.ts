import { RathError, show } from '../../../base/errors.ts'
import { isPlainObject, type JsonObject } from '../../../base/json.ts'
import type { NewMemory, Scope } from '../../spec.ts'
import type { VikingClient } from './client.ts'
import { isRefusal } from './errors.ts'

/** What the server takes at once. */
const mostMessages = 100
const firstPollMs = 100
const longestPollMs = 2000
/** Waiting for an extraction ends after about this long. */
const longestTaskMs = 10 * 60_000

interface Task {
  readonly status: string
  readonly error?: unknown
  readonly result?: unknown
}

/**
 * Tells the server's session what was said and waits until it has drawn its memories from it.
 * Returns the addresses of those it wrote or changed.
 */
export async function extract(
  client: VikingClient,
  scope: Scope,
  turns: readonly NewMemory[],
  signal?: AbortSignal,
): Promise<string[]> {
  const id = `openrath-${scope.replaceAll(/[^\w-]/g, '-')}`
  const path = `/api/v1/sessions/${encodeURIComponent(id)}`
  await client.call('POST', '/api/v1/sessions', { body: { session_id: id }, signal }).catch(error => {
    if (!isRefusal(error, 'ALREADY_EXISTS', 'CONFLICT')) throw error
  })
  for (let from = 0; from < turns.length; from += mostMessages) {
    const messages = turns.slice(from, from + mostMessages).map(messageOf)
    await client.call('POST', `${path}/messages/batch`, { body: { messages }, signal })
  }
  const { task_id: task } = await client.call<{ task_id: string | null }>('POST', `${path}/commit`, {
    body: {},
    signal,
  })
  return task === null ? [] : changedBy(client, await finished(client, task, signal), signal)
}

function messageOf({ text, category, at, source }: NewMemory): JsonObject {
  return {
    role: category === 'turn' && text.startsWith('user: ') ? 'user' : 'assistant',
    content: text,
    ...(at !== undefined && { created_at: new Date(at).toISOString() }),
    ...(source?.by !== undefined && /^[\w-]+$/.test(source.by) && { peer_id: source.by }),
  }
}

async function finished(client: VikingClient, task: string, signal?: AbortSignal): Promise<Task> {
  let waited = 0
  for (let wait = firstPollMs; ; wait = Math.min(longestPollMs, wait * 2)) {
    const state = await client.call<Task>('GET', `/api/v1/tasks/${encodeURIComponent(task)}`, { signal })
    if (state.status === 'completed') return state
    if (state.status === 'failed' || state.status === 'cancelled') {
      throw new RathError(
        'store-failed',
        `OpenViking kept the session, but drawing memories from it ${state.status} (${show(state.error)}). Check the ` +
          'language model in the server’s configuration, or open the memory with { extract: false }.',
        { data: { task } },
      )
    }
    if (waited > longestTaskMs) {
      throw new RathError(
        'store-busy',
        `OpenViking has worked on task ${task} for ${longestTaskMs / 60_000} minutes.`,
        {
          data: { task },
        },
      )
    }
    await client.pause(wait, signal)
    waited += wait
  }
}

/** From the record that the server keeps of each commit. */
async function changedBy(client: VikingClient, { result }: Task, signal?: AbortSignal): Promise<string[]> {
  const uri = isPlainObject(result) ? result.memory_diff_uri : undefined
  if (typeof uri !== 'string') return []
  const text = await client
    .call<string>('GET', '/api/v1/content/read', { query: { uri, raw: true }, signal })
    .catch(error => {
      if (isRefusal(error, 'NOT_FOUND')) return '{}'
      throw error
    })
  const { operations = {} } = JSON.parse(text) as {
    operations?: Partial<Record<'adds' | 'updates', readonly { readonly uri: string }[]>>
  }
  return [...(operations.adds ?? []), ...(operations.updates ?? [])].map(change => change.uri)
}
