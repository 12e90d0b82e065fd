import { RathError, show } from '../../../base/errors.ts'
import type { Json, JsonObject } from '../../../base/json.ts'
import type { ToolOutcome } from '../../../session/chunk.ts'
import type { Message } from '../../../session/message.ts'
import { type AnswerPart, type FilePart, type ImagePart, type Part, textOf } from '../../../session/part.ts'
import { markStableParts } from './cache.ts'
import { CallIds } from './call-ids.ts'
import type { Dialect } from './dialect.ts'
import { asText, inResult } from './media.ts'
import type { ByProvider, PromptMessage, PromptPart } from './types.ts'

/** A conversation that was converted up to an answer, behind which nothing is joined any more to what came before it. It grows with every answer. */
export interface Converted {
  readonly messages: Message[]
  readonly prompt: PromptMessage[]
  /** For each message, how long the prompt is behind it; 0 where it is not an answer. */
  readonly ends: number[]
}

/**
 * What was converted before, by the first message behind the instructions, so that it goes when the conversation does. The one asked about
 * last comes first.
 */
export type Conversations = WeakMap<Message, Converted[]>

/** Conversations of one beginning that are kept: branches, and the instructions of several agents, that are asked about in turn. */
const keptBranches = 8

/**
 * The messages as the AI SDK takes them: results of one turn in one message, neighbouring user messages as one. A conversation that
 * grows is converted once: what `before` has of the same messages is taken from there, and frozen, since later requests share it.
 */
export function toPrompt(
  messages: readonly Message[],
  dialect: Dialect,
  cache: boolean,
  before: Conversations = new WeakMap(),
): PromptMessage[] {
  const branches = branchesOf(messages, before)
  const known = knownPart(messages, branches)
  const { prompt: fresh, ends } = convert(messages, known.count, dialect)
  const prompt = known.prompt.concat(fresh)
  if (ends.length > 0) keep(messages, fresh, ends, known, branches)
  if (cache && dialect.cacheMarker) markStableParts(prompt, dialect.cacheMarker)
  if (dialect.lastWord && prompt.at(-1)?.role === 'assistant') say(prompt, [goOn])
  return prompt
}

/** Messages from the beginning, or from behind an answer, and for each answer how long the prompt is behind it. */
function convert(
  messages: readonly Message[],
  start: number,
  dialect: Dialect,
): { readonly prompt: PromptMessage[]; readonly ends: (number | undefined)[] } {
  const prompt: PromptMessage[] = []
  const ends: (number | undefined)[] = []
  const ids = new CallIds(dialect.callIds)
  /** Media of tool results that the provider takes only from a user. They wait until all results of the turn are told. */
  let shown: PromptPart[] = []
  const show = () => {
    if (shown.length > 0) say(prompt, shown)
    shown = []
  }
  for (let i = start; i < messages.length; i++) {
    const message = messages[i] as Message
    if (message.role === 'tool') {
      const parts = last(prompt, 'tool') ?? add(prompt, 'tool')
      parts.push(toolResult(message, ids, dialect, shown))
      continue
    }
    show()
    if (message.role === 'system') addSystem(prompt, message.content, dialect)
    else if (message.role === 'user') {
      const parts = message.content.map(part => promptPart(part, dialect))
      if (parts.length > 0) say(prompt, parts)
    } else if (message.content.length > 0) {
      prompt.push({ role: 'assistant', content: message.content.map(part => answerPart(part, ids, dialect)) })
      ends[i - start] = prompt.length
    }
  }
  show()
  return { prompt, ends }
}

/** A session is handed on as it is, from one agent to the next: most often it ends with an answer. */
const goOn: PromptPart = Object.freeze({ type: 'text', text: 'Go on, as your instructions say.' })

function branchesOf(messages: readonly Message[], before: Conversations): Converted[] {
  const first = messages.find(message => message.role !== 'system')
  if (!first) return []
  let branches = before.get(first)
  if (!branches) {
    branches = []
    before.set(first, branches)
  }
  return branches
}

interface Known {
  /** The conversation that has the longest part in common with these messages. */
  readonly of: Converted | undefined
  /** How many messages that is, up to and with an answer. */
  readonly count: number
  /** What was made of them. */
  readonly prompt: readonly PromptMessage[]
}

function knownPart(messages: readonly Message[], branches: readonly Converted[]): Known {
  let of: Converted | undefined
  let count = 0
  for (const branch of branches) {
    // One that has more in common has the next message in common too.
    if (branch.messages[count] !== messages[count]) continue
    const common = answeredPart(branch, messages)
    if (common <= count) continue
    of = branch
    count = common
  }
  if (!of) return { of, count, prompt: [] }
  return {
    of,
    count,
    prompt: count === of.messages.length ? of.prompt : of.prompt.slice(0, of.ends[count - 1]),
  }
}

/** How many messages they have in common, up to and with an answer. */
function answeredPart({ messages: seen, ends }: Converted, messages: readonly Message[]): number {
  const limit = Math.min(seen.length, messages.length)
  let same = 0
  while (same < limit && seen[same] === messages[same]) same++
  while (same > 0 && ends[same - 1] === 0) same--
  return same
}

/** Adds to the conversation that these messages continue, or keeps them as a branch of their own. */
function keep(
  messages: readonly Message[],
  fresh: readonly PromptMessage[],
  ends: readonly (number | undefined)[],
  { of, count, prompt }: Known,
  branches: Converted[],
): void {
  let to = of
  if (to === undefined || to.messages.length > count) {
    to = {
      messages: messages.slice(0, count),
      prompt: prompt.slice(),
      ends: of ? of.ends.slice(0, count) : [],
    }
    branches.unshift(to)
    if (branches.length > keptBranches) branches.pop()
  } else if (branches[0] !== to) {
    branches.splice(branches.indexOf(to), 1)
    branches.unshift(to)
  }
  const before = to.prompt.length
  for (let i = 0; i < ends.length; i++) {
    const end = ends[i]
    to.messages.push(messages[count + i] as Message)
    to.ends.push(end === undefined ? 0 : before + end)
  }
  for (let i = 0; i < (ends.at(-1) as number); i++) to.prompt.push(frozen(fresh[i] as PromptMessage))
}

function frozen(message: PromptMessage): PromptMessage {
  if (typeof message.content !== 'string') Object.freeze(message.content).forEach(Object.freeze)
  return Object.freeze(message)
}

function addSystem(prompt: PromptMessage[], content: readonly Part[], dialect: Dialect): void {
  const media = content.find(part => part.type !== 'text')
  if (media) {
    throw new RathError(
      'model-rejected',
      `A system message holds ${media.type === 'image' ? 'an image' : 'a file'}, and providers take text alone there. Put it into a user message.`,
    )
  }
  const text = textOf(content)
  if (text === '') return
  const before = prompt.at(-1)
  if (before?.role === 'system' && !dialect.systemMessages) before.content += `\n\n${text}`
  else prompt.push({ role: 'system', content: text })
}

function say(prompt: PromptMessage[], parts: PromptPart[]): void {
  const before = last(prompt, 'user')
  if (before) before.push(...parts)
  else prompt.push({ role: 'user', content: parts })
}

function last(prompt: PromptMessage[], role: 'user' | 'tool'): PromptPart[] | undefined {
  const message = prompt.at(-1)
  return message?.role === role ? (message.content as PromptPart[]) : undefined
}

function add(prompt: PromptMessage[], role: 'tool'): PromptPart[] {
  const content: PromptPart[] = []
  prompt.push({ role, content })
  return content
}

function answerPart(part: AnswerPart, ids: CallIds, dialect: Dialect): PromptPart {
  if (part.type !== 'tool-call' && part.type !== 'reasoning') return promptPart(part, dialect)
  const options = providerOptions(part.extras)
  return part.type === 'reasoning'
    ? { type: 'reasoning', text: part.text, ...options }
    : { type: 'tool-call', toolCallId: ids.of(part.id), toolName: part.name, input: part.args, ...options }
}

function promptPart(part: Part, dialect: Dialect): PromptPart {
  const said = part.type === 'text' ? part : asText(part, dialect)
  if (said) return { type: 'text', text: said.text, ...providerOptions(said.extras) }
  return mediaPart(part as ImagePart | FilePart, dialect)
}

function mediaPart(part: ImagePart | FilePart, dialect: Dialect): PromptPart {
  const options = providerOptions(part.extras)
  const filename = part.type === 'file' && part.name !== undefined ? { filename: part.name } : {}
  return {
    type: 'file',
    mediaType: part.mediaType,
    ...filename,
    data: mediaData(part, dialect),
    ...options,
  }
}

function mediaData(part: ImagePart | FilePart, { version }: Dialect): unknown {
  const tagged = version === 'v4'
  if (part.data !== undefined) return tagged ? { type: 'data', data: part.data } : part.data
  const { url = '' } = part
  if (!URL.canParse(url)) {
    throw new RathError(
      'model-rejected',
      `The ${part.type} with media type ${part.mediaType} lies at ${show(url)}, which is not a URL. Give an absolute URL, or the bytes as data.`,
    )
  }
  return tagged ? { type: 'url', url: new URL(url) } : new URL(url)
}

function toolResult(
  { callId, tool, outcome: given }: Extract<Message, { role: 'tool' }>,
  ids: CallIds,
  dialect: Dialect,
  shown: PromptPart[],
): PromptPart {
  const outcome =
    given.kind === 'value' && given.content ? { ...given, content: inResult(given.content, dialect) } : given
  const media = outcome.kind === 'value' && outcome.content?.some(part => part.type !== 'text')
  if (media && !dialect.mediaInResults) {
    const parts = outcome.content?.filter(part => part.type !== 'text') ?? []
    shown.push({ type: 'text', text: `Shown by ${tool} (${callId}):` })
    shown.push(...parts.map(part => promptPart(part, dialect)))
  }
  return {
    type: 'tool-result',
    toolCallId: ids.of(callId),
    toolName: tool,
    output: toolOutput(outcome, dialect),
  }
}

type Output = { type: string; value?: unknown; reason?: string }

function toolOutput(outcome: ToolOutcome, dialect: Dialect): Output {
  switch (outcome.kind) {
    case 'error': {
      const detail = outcome.detail === undefined ? '' : `\n${textOfValue(outcome.detail)}`
      return { type: 'error-text', value: `${outcome.error}: ${outcome.message}${detail}` }
    }
    case 'denied': {
      const reason = `The call was denied${outcome.reason ? `: ${outcome.reason}` : '.'}`
      return dialect.version === 'v2'
        ? { type: 'error-text', value: reason }
        : { type: 'execution-denied', reason }
    }
    case 'value': {
      const { content, value } = outcome
      if (content === undefined) {
        return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value }
      }
      const hasMedia = content.some(part => part.type !== 'text')
      if (!hasMedia) return { type: 'text', value: textOf(content) }
      if (!dialect.mediaInResults) {
        return { type: 'text', value: textOf(content) || 'The result follows in the next message.' }
      }
      return { type: 'content', value: content.map(part => resultPart(part, dialect)) }
    }
  }
}

function textOfValue(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A part inside a tool's result, which every version of the specification spells its own way. */
function resultPart(part: Part, dialect: Dialect): PromptPart {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if (dialect.version === 'v4') return mediaPart(part, dialect)
  const { mediaType, data, url } = part
  if (dialect.version === 'v2') {
    return data === undefined ? { type: 'text', text: String(url) } : { type: 'media', data, mediaType }
  }
  const kind = part.type === 'image' ? 'image' : 'file'
  return data === undefined
    ? { type: `${kind}-url`, url }
    : {
        type: `${kind}-data`,
        data,
        mediaType,
        ...(part.type === 'file' && part.name !== undefined && { filename: part.name }),
      }
}

/** Extras that came from a provider's metadata go back as they came: signatures, ids of items. */
function providerOptions(extras: JsonObject | undefined): { providerOptions?: ByProvider } {
  if (extras === undefined) return {}
  const own = Object.entries(extras).filter(
    ([, value]) => typeof value === 'object' && value !== null && !Array.isArray(value),
  )
  return own.length === 0 ? {} : { providerOptions: Object.fromEntries(own) as ByProvider }
}
