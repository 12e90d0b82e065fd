import { collectRows } from '../evidence/bundle/collect.ts'
import { toATIF } from '../evidence/exports/atif.ts'
import { toOpenAIMessages } from '../evidence/exports/openai.ts'
import { preferencePairs } from '../evidence/exports/preference.ts'
import { toUIMessages } from '../evidence/exports/ui.ts'
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
      const session = await store.sessions.get(id)
      const prompts = await promptsOf(session, store)
      return json(toATIF(session, { prompt: digest => prompts.get(digest) }))
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

async function promptsOf(session: Session, store: Store): Promise<Map<string, string>> {
  const prompts = new Map<string, string>()
  for (const chunk of session.chunks) {
    if (chunk.kind !== 'assistant' || chunk.prompt === undefined || prompts.has(chunk.prompt)) continue
    const kept = await store.sessions.get(promptId(chunk.prompt)).catch(() => undefined)
    const text = kept?.chunks.at(0)?.text
    if (text !== undefined) prompts.set(chunk.prompt, text)
  }
  return prompts
}
