import { type ChunkInput, Session } from 'openrath'

/** What is measured with: the chunk number `i` of a history. */
export type Write = (i: number) => ChunkInput

export function build(size: number, write: Write, start = Session.create('empty')): Session {
  let session = start
  for (let i = 0; i < size; i++) session = session.append(write(i))
  return session
}

/** The smallest chunk there is, in the form the session keeps it: nothing hides the cost of the machinery. */
export function said(i: number): ChunkInput {
  return { kind: 'user', at: 1_800_000_000_000 + i, content: [{ type: 'text', text: `message number ${i}` }] }
}

/** What an agent with tools records: asked, called, got, answered. */
export function turn(i: number): ChunkInput {
  const at = 1_800_000_000_000 + i
  const callId = `call_${i >> 2}`
  const usage = {
    inputTokens: 900 + i,
    outputTokens: 40,
    cachedInputTokens: 0,
    reasoningTokens: 0,
    totalTokens: 940 + i,
  }
  const args = { path: `src/part-${i >> 2}.ts`, lines: [1, 80] }
  switch (i & 3) {
    case 0:
      return {
        kind: 'user',
        at,
        content: [{ type: 'text', text: `Please look at part ${i} and say what it does.` }],
      }
    case 1:
      return {
        kind: 'assistant',
        at,
        content: [
          { type: 'text', text: 'I will read the file first.' },
          { type: 'tool-call', id: callId, name: 'read_file', args },
        ],
        model: 'model-a',
        usage,
      }
    case 2:
      return {
        kind: 'tool-result',
        at,
        callId,
        tool: 'read_file',
        args,
        outcome: { kind: 'value', value: { text: 'export const answer = 42\n'.repeat(8), truncated: false } },
        durationMs: 12,
      }
    default:
      return {
        kind: 'assistant',
        at,
        content: [
          { type: 'text', text: `It exports the answer and nothing else. It is used in ${i} places.` },
        ],
        model: 'model-a',
        finishReason: 'stop',
        usage,
      }
  }
}

export function short(size: number): string {
  return size >= 1_000 ? `${size / 1_000}k` : String(size)
}
