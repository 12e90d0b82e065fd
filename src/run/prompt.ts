import { type Digest, digestOf } from '../base/digest.ts'
import { chunksFrom, keepView, previousOf, viewKeptAt } from '../session/chain.ts'
import type { Chunk, ChunkInput } from '../session/chunk.ts'
import { type KeptView, type Message, MessageView, type ToolMessage } from '../session/message.ts'
import { Session, sessionOf, valueFrom } from '../session/session.ts'
import { standing } from '../session/summary.ts'
import type { Store } from '../store/spec.ts'
import { forModel } from '../tool/big-output.ts'

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

/**
 * The messages of a request: `instructions`, then what a model is shown of a session. The view is kept with the session's last chunk, so
 * that a request looks only at the chunks since the last one before it on this history, whichever call or fork made that. Messages shown
 * before stay the same objects, so that a model driver can keep what it made of them.
 */
export function requestMessages(session: Session, instructions: readonly Message[] = []): Message[] {
  const { tip } = valueFrom(session)
  if (!tip) return instructions.slice()
  const view = viewAt(tip)
  const messages = view.messages(instructions)
  keepView(tip, view.keep())
  return messages
}

function viewAt(tip: Chunk): MessageView {
  const fresh: Chunk[] = []
  let kept: KeptView | undefined
  for (let here: Chunk | undefined = tip; here && !kept; here = previousOf(here)) {
    kept = viewKeptAt(here)
    if (!kept) fresh.push(here)
  }
  // A summary changes what was shown before it: begin again, once.
  if (fresh.some(chunk => chunk.kind === 'compress')) {
    const view = new MessageView(shortened)
    for (const chunk of standing(chunksFrom(tip, 0))) view.add(chunk)
    return view
  }
  const view = kept ? MessageView.from(kept, shortened) : new MessageView(shortened)
  // Most forks are made of what a call returned, which ends with an answer: they share the view up to there.
  const answer = fresh.find(chunk => chunk.kind === 'assistant')
  for (const chunk of fresh.reverse()) {
    view.add(chunk)
    if (chunk === answer && view.isSettled) keepView(chunk, view.keep())
  }
  return view
}

/** A result too long for a request is cut in the middle. */
function shortened(message: ToolMessage): ToolMessage {
  const outcome = forModel(message.outcome, undefined, message.callId)
  return outcome === message.outcome ? message : { ...message, outcome }
}
