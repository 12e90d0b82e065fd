import { type ChunkInput, Session } from 'openrath'

/** A conversation of so many chunks, questions and answers in turn; it ends with a question. */
export function historyOf(chunks: number): Session {
  const turns: ChunkInput[] = []
  for (let i = 1; i < chunks; i++) {
    turns.push(i % 2 ? { kind: 'assistant', text: `Answer ${i}.` } : { kind: 'user', text: `Question ${i}?` })
  }
  return Session.fromUserMessage('Question 0?')
    .append(...turns)
    .user('go')
}

/** The same as `ai` takes it. */
export function sdkMessages(past: Session): { role: 'user' | 'assistant'; content: string }[] {
  return past.chunks.map(chunk => ({
    role: chunk.kind === 'assistant' ? 'assistant' : 'user',
    content: chunk.text,
  }))
}
