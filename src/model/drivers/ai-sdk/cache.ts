import type { ByProvider, PromptMessage } from './types.ts'

/**
 * Marks three ends of the prompt for the provider's prefix cache: the last system message, which every agent with this prompt
 * shares; the end of the request before this one, which is where its cache was written; and the end of this request, where the
 * next one or a fork will look. A provider that allows four markers leaves one to the caller.
 */
export function markStableParts(prompt: readonly PromptMessage[], marker: ByProvider): void {
  mark(
    prompt.findLast(message => message.role === 'system'),
    marker,
  )
  const end = prompt.findLastIndex(isAsking)
  const answer = prompt.findLastIndex((message, i) => message.role === 'assistant' && i < end)
  mark(
    prompt.findLast((message, i) => i < answer && isAsking(message)),
    marker,
  )
  mark(prompt[end], marker)
}

function isAsking({ role }: PromptMessage): boolean {
  return role === 'user' || role === 'tool'
}

function mark(message: PromptMessage | undefined, marker: ByProvider): void {
  if (message) message.providerOptions = { ...message.providerOptions, ...marker }
}
