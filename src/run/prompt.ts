import { type Digest, digestOf } from '../base/digest.ts'
import type { ChunkInput } from '../session/chunk.ts'
import type { Message } from '../session/message.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import type { Store } from '../store/spec.ts'

const kept = new WeakMap<Store, Set<Digest>>()

const instructions = new WeakMap<Session, readonly Message[]>()

/** The instructions as a request begins with them: the same objects in every call, so that a model driver can keep what it made of them. */
export function instructionsOf(prompt: Session): readonly Message[] {
  let messages = instructions.get(prompt)
  if (!messages) {
    messages = prompt.messages()
    instructions.set(prompt, messages)
  }
  return messages
}

const digests = new WeakMap<Store, WeakMap<Session, Digest>>()

/** What an answer's `prompt` names: the instructions as the store keeps them. */
export function promptDigest(prompt: Session, store: Store): Digest | undefined {
  if (prompt.length === 0) return undefined
  let known = digests.get(store)
  if (!known) {
    known = new WeakMap()
    digests.set(store, known)
  }
  let digest = known.get(prompt)
  if (digest === undefined) {
    digest = digestOf(store.clean(prompt).messages())
    known.set(prompt, digest)
  }
  return digest
}

/** The id under which a store keeps the instructions with this digest. */
export function promptId(digest: Digest): string {
  return `prompt-${digest}`
}

/**
 * Keeps an agent's instructions, once for each text, so that the prompt behind any answer can be read again:
 * `store.sessions.get(`prompt-${chunk.prompt}`)`. Without times, so that every process writes the same session.
 */
export async function keepPrompt(prompt: Session, digest: Digest, store: Store): Promise<void> {
  const known = kept.get(store) ?? new Set()
  kept.set(store, known)
  if (known.has(digest)) return
  const chunks = prompt.chunks.map(chunk => ({ ...chunk, at: 0 }))
  const timeless = Session.create('empty').append(...(chunks as ChunkInput[]))
  const value = valueFrom(timeless)
  const lineage = Object.freeze({ ...value.lineage, parents: [], operation: 'create', at: 0 })
  await store.sessions.put(sessionOf({ ...value, id: promptId(digest), lineage }))
  known.add(digest)
}
