import type { ByProvider, PromptMessage } from './types.ts'

/**
 * Marks three ends of the prompt for the provider's prefix cache: the last system message, which every agent with this prompt
 * shares; the end of the request before this one, which is where its cache was written; and the end of this request, where the
 * next one or a fork will look. A provider that allows four markers leaves one to the caller.
 */
export function markStableParts(prompt: PromptMessage[], marker: ByProvider): void {
  // System messages come first, and a conversation may be long.
  const said = prompt.findIndex(message => message.role !== 'system')
  mark(prompt, (said < 0 ? prompt.length : said) - 1, marker)
  const end = prompt.findLastIndex(isAsking)
  const answer = prompt.findLastIndex((message, i) => message.role === 'assistant' && i < end)
  mark(
    prompt,
    prompt.findLastIndex((message, i) => i < answer && isAsking(message)),
    marker,
  )
  mark(prompt, end, marker)
}

function isAsking({ role }: PromptMessage): boolean {
  return role === 'user' || role === 'tool'
}

/** On a copy: the next request has the message too, and its marker elsewhere. */
function mark(prompt: PromptMessage[], index: number, marker: ByProvider): void {
  const message = prompt[index]
  if (message) prompt[index] = { ...message, providerOptions: { ...message.providerOptions, ...marker } }
}
