import { collectRows } from '../evidence/bundle/collect.ts'
import { toATIF } from '../evidence/exports/atif.ts'
import { toOpenAIMessages } from '../evidence/exports/openai.ts'
import { preferencePairs } from '../evidence/exports/preference.ts'
import { toUIMessages } from '../evidence/exports/ui.ts'
import { rowOf, sessionsInside } from '../run/graph/rows.ts'
import { promptId } from '../run/prompt.ts'
import type { Session } from '../session/session.ts'
import type { Store } from '../store/spec.ts'

export type SessionFormat = 'openai' | 'ui' | 'atif' | 'preference'

/** A session as other programs read it: one JSON document, or for pairs one a line. */
export const sessionFormats: Readonly<Record<SessionFormat, (id: string, store: Store) => Promise<string>>> =
  {
    openai: async (id, store) => json(toOpenAIMessages(await store.sessions.get(id))),
    ui: async (id, store) => json(toUIMessages(await store.sessions.get(id))),
    atif: async (id, store) => {
      const sessions = await withInside(id, store)
      const prompts = await promptsOf([...sessions.values()], store)
      const options = {
        prompt: (digest: string) => prompts.get(digest),
        sessions: (inside: string) => sessions.get(inside),
      }
      return json(toATIF(sessions.get(id) as Session, options))
    },
    preference: async (id, store) => {
      const { rows } = await collectRows(store, { sessions: [id], with: 'graph' })
      const sessions = await Promise.all(rows.map(row => store.sessions.get(row.id)))
      return preferencePairs(sessions)
        .map(pair => `${JSON.stringify(pair)}\n`)
        .join('')
    },
  }

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** A session and those that were made inside it, as far as the store has them. */
async function withInside(id: string, store: Store): Promise<Map<string, Session>> {
  const sessions = new Map([[id, await store.sessions.get(id)]])
  for (const session of sessions.values())
    for (const inside of session.chunks.flatMap(sessionsInside)) {
      const found = sessions.has(inside) ? undefined : await rowOf(store, inside)
      if (found) sessions.set(inside, await store.sessions.get(inside))
    }
  return sessions
}

async function promptsOf(sessions: readonly Session[], store: Store): Promise<Map<string, string>> {
  const prompts = new Map<string, string>()
  for (const chunk of sessions.flatMap(session => [...session.chunks])) {
    if (chunk.kind !== 'assistant' || chunk.prompt === undefined || prompts.has(chunk.prompt)) continue
    const kept = await store.sessions.get(promptId(chunk.prompt)).catch(() => undefined)
    const text = kept?.chunks.at(0)?.text
    if (text !== undefined) prompts.set(chunk.prompt, text)
  }
  return prompts
}
