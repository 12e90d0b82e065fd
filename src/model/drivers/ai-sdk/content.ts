import { toBase64 } from '../../../base/base64.ts'
import { copyJson, isJson, isPlainObject, type Json, type JsonObject } from '../../../base/json.ts'
import type { AnswerPart, FilePart, ImagePart } from '../../../session/part.ts'
import type { FileContent, ToolCallContent } from './types.ts'

export interface TextBlock {
  readonly type: 'text' | 'reasoning'
  text: string
  extras: JsonObject | undefined
}

export interface CallBlock {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  /** The arguments as they arrive; `call` replaces them when it comes. */
  text: string
  call: ToolCallContent | undefined
}

type Block = TextBlock | CallBlock | ImagePart | FilePart

/** Gathers the parts of one answer in the order they began. */
export class Content {
  readonly #blocks: Block[] = []
  /** By the provider's ids; of several calls under one id, the last. */
  readonly #calls = new Map<string, CallBlock>()
  readonly #callIds = new Set<string>()
  /** Names of tools that the provider ran by itself; nobody else must. */
  readonly providerTools: string[] = []

  text(type: 'text' | 'reasoning'): TextBlock {
    const block: TextBlock = { type, text: '', extras: undefined }
    this.#blocks.push(block)
    return block
  }

  /** A whole block at once. */
  say({
    type,
    text,
    providerMetadata,
  }: {
    type: 'text' | 'reasoning'
    text: string
    providerMetadata?: unknown
  }): void {
    const block = this.text(type)
    block.text = text
    addMetadata(block, providerMetadata)
  }

  /** A call whose arguments are about to arrive. */
  startCall(id: string, name: string): CallBlock {
    const block: CallBlock = { type: 'tool-call', id: this.#ownId(id), name, text: '', call: undefined }
    this.#calls.set(id, block)
    this.#blocks.push(block)
    return block
  }

  openCall(id: string): CallBlock | undefined {
    return this.#calls.get(id)
  }

  call(call: ToolCallContent): void {
    if (call.providerExecuted) {
      this.providerTools.push(call.toolName)
      return
    }
    const begun = this.#calls.get(call.toolCallId)
    const open = begun && !begun.call ? begun : this.startCall(call.toolCallId, call.toolName)
    open.call = call
  }

  /** Some servers number the calls of an answer badly, or not at all; a result names its call by its id. */
  #ownId(id: string): string {
    let own = id || 'call'
    for (let n = 2; this.#callIds.has(own); n++) own = `${id || 'call'}~${n}`
    this.#callIds.add(own)
    return own
  }

  file(file: FileContent): void {
    const part = readFile(file)
    if (part) this.#blocks.push(part)
  }

  /** The parts. Blocks that stayed empty and carry nothing to send back are left out. */
  parts(): AnswerPart[] {
    const parts: AnswerPart[] = []
    for (const block of this.#blocks) {
      if (block.type === 'tool-call') parts.push(toolCall(block))
      else if (block.type === 'image' || block.type === 'file') parts.push(block)
      else if (block.text !== '' || (block.type === 'reasoning' && block.extras))
        parts.push({ type: block.type, text: block.text, ...(block.extras && { extras: block.extras }) })
    }
    return parts
  }
}

/** Adds a provider's metadata to a block: signatures arrive with an empty piece of text, or at the end. */
export function addMetadata(block: TextBlock, metadata: unknown): void {
  if (metadata === undefined || holds(block.extras, metadata)) return
  const own = plainMetadata(metadata)
  if (own === undefined) return
  const merged: Record<string, Json> = { ...block.extras }
  for (const [provider, fields] of Object.entries(own)) {
    const before = merged[provider]
    merged[provider] = isPlainObject(before) ? { ...before, ...(fields as JsonObject) } : fields
  }
  block.extras = merged
}

/** True when nothing in the metadata is new: some packages repeat the same with every piece. */
function holds(extras: JsonObject | undefined, metadata: unknown): boolean {
  if (extras === undefined || typeof metadata !== 'object') return false
  for (const provider in metadata) {
    const had = extras[provider] as JsonObject | undefined
    const now = (metadata as JsonObject)[provider] as JsonObject
    for (const name in now) if (had?.[name] !== now[name]) return false
  }
  return true
}

/** Metadata as JSON, or nothing when it is empty. */
export function plainMetadata(metadata: unknown): JsonObject | undefined {
  if (!isPlainObject(metadata)) return undefined
  const filled = Object.entries(metadata).filter(
    ([, fields]) => isPlainObject(fields) && Object.keys(fields).length > 0,
  )
  // What is not JSON becomes null: it is extra, and not worth failing an answer for.
  return filled.length === 0 ? undefined : (copyJson(Object.fromEntries(filled), '', []) as JsonObject)
}

function toolCall({ id, name, text, call }: CallBlock): AnswerPart {
  const extras = plainMetadata(call?.providerMetadata)
  return {
    type: 'tool-call',
    id,
    name: call?.toolName ?? name,
    args: readArguments(call ? call.input : text),
    ...(extras && { extras }),
  }
}

/** Arguments as a model wrote them: nothing written is `{}`, and what is not JSON stays as it is. */
function readArguments(input: Json | undefined): Json {
  if (typeof input !== 'string') return input ?? {}
  if (input.trim() === '') return {}
  try {
    const args: unknown = JSON.parse(input)
    // `1e999` parses too, to a number that cannot be recorded.
    return isJson(args) ? args : input
  } catch {
    return input
  }
}

function readFile({
  mediaType,
  data: given,
  providerMetadata,
}: FileContent): ImagePart | FilePart | undefined {
  const extras = plainMetadata(providerMetadata)
  const tagged = isPlainObject(given) ? given : undefined
  const data = tagged ? (tagged.data ?? tagged.url) : given
  const where =
    data instanceof Uint8Array
      ? { data: toBase64(data) }
      : data instanceof URL || tagged?.type === 'url'
        ? { url: String(data) }
        : typeof data === 'string'
          ? { data }
          : undefined
  if (where === undefined) return undefined
  const type = mediaType.startsWith('image/') ? 'image' : 'file'
  return { type, mediaType, ...where, ...(extras && { extras }) }
}
